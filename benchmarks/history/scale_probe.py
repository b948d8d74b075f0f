"""What a command or a question takes in a fresh process: wall time, and the memory of it and its children together."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

# How often memory is looked at; a peak that is shorter may be missed.
_EVERY_S = 0.02
_HARNESS = ("-c", "from harness.cli import main; main()")


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one thing took, over its repetitions.

    Attributes:
        seconds: The median.
        slowest: In seconds.
        peak_bytes: Largest sum of resident memory of all its processes; pages that they share count in each.
        repeats: How often it was done.
    """

    seconds: float
    slowest: float
    peak_bytes: int
    repeats: int


def cost_of_command(arguments: Sequence[str], repeats: int, folder: Path) -> Cost:
    """What a `harness` command takes from its start to its end, interpreter and imports included.

    Args:
        folder: Where what it prints goes.
    """
    return _cost([_timed([*_HARNESS, *arguments], folder)[:2] for _ in range(repeats)])


def cost_of_question(what: str, history: Path, repeats: int, folder: Path) -> Cost:
    """What a question takes in a process that has the history's modules loaded, as a notebook has.

    Args:
        what: `open`, `series` or `changes`, see `main`.
    """
    found = []
    for _ in range(repeats):
        _, peak_bytes, printed = _timed(["-m", __name__, what, str(history)], folder)
        found.append((float(json.loads(printed)), peak_bytes))
    return _cost(found)


def _cost(found: Sequence[tuple[float, int]]) -> Cost:
    seconds = [one for one, _ in found]
    return Cost(
        seconds=statistics.median(seconds),
        slowest=max(seconds),
        peak_bytes=max(peak for _, peak in found),
        repeats=len(found),
    )


def _timed(arguments: Sequence[str], folder: Path) -> tuple[float, int, str]:
    """Wall seconds, peak of memory, and what was printed.

    Raises:
        RuntimeError: It failed; what it said is in the message.
    """
    printed = folder / "printed.txt"
    said = folder / "said.txt"
    began = time.perf_counter()
    with printed.open("wb") as out, said.open("wb") as log:
        process = psutil.Popen([sys.executable, *arguments], stdout=out, stderr=log)
        peak_bytes = 0
        while True:
            peak_bytes = max(peak_bytes, _resident_bytes(process))
            try:
                status = process.wait(_EVERY_S)
                break
            except (psutil.TimeoutExpired, subprocess.TimeoutExpired):
                continue
    seconds = time.perf_counter() - began
    if status not in (0, 1):  # 1: a regression was found
        raise RuntimeError(f"{' '.join(arguments)}: {said.read_text()[-500:]}")
    return seconds, peak_bytes, printed.read_text()


def _resident_bytes(process: psutil.Process) -> int:
    total = 0
    try:
        for one in (process, *process.children(recursive=True)):
            total += one.memory_info().rss
    except psutil.Error:  # it has just ended
        return total
    return total


def main(what: str, place: str) -> float:
    """Seconds of one question.

    `open` is open_history; `series` all points of one series, the median of nine; `changes` the change points of
    all series.
    """
    import pandas  # noqa: F401 (it is loaded before anything is timed)

    from harness.history.changes import history_changes
    from harness.history.series import open_history

    began = time.perf_counter()
    with open_history(place) as history:
        if what == "open":
            return time.perf_counter() - began
        ids = history.query("SELECT DISTINCT series FROM points ORDER BY hash(series) LIMIT 9")["series"]
        if what == "series":
            times = []
            for one in ids:
                began = time.perf_counter()
                history.points(one)
                times.append(time.perf_counter() - began)
            return statistics.median(times)
        began = time.perf_counter()
        history_changes(history)
        return time.perf_counter() - began


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], sys.argv[2])))
