"""Which peak of the machine a case can be held against."""

from __future__ import annotations

from harness.machine.pinning import usable_cores
from harness.records.case import Case

_DRIVERS = ("local-sync", "local-task")


def peak_threads(case: Case) -> int | None:
    """How many threads the peak is for that bounds a case; None where it does not run on processor cores alone."""
    drivers = {uri.partition("://")[0] for uri in case.uris}
    if not drivers <= set(_DRIVERS):
        return None
    if case.pin or drivers == {"local-sync"}:  # which calls its devices one after the other
        return 1
    cores = usable_cores()
    return min(case.threads, cores) if case.threads is not None and len(case.uris) == 1 else cores
