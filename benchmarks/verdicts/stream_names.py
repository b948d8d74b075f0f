"""What the name of a stream says: its workload, its slowdown, what computed beside it, and whether the head waits."""


def slowdown_of(stream: str) -> tuple[str, float]:
    """Workload and slowdown of a stream by its name; 0 of a module against itself."""
    workload, change = stream.split()[:2]
    return workload, 0.0 if change == "A/A" else float(change) / 100


def is_quiet(stream: str) -> bool:
    """Whether nothing else computed meanwhile."""
    return not company_of(stream)


def is_waiting(stream: str) -> bool:
    """Whether the head waits instead of computing."""
    return "(" in stream


def company_of(stream: str) -> str:
    """What computed meanwhile; "" where nothing did."""
    return stream.partition(" beside ")[2]
