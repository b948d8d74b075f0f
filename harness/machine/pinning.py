"""Where a measuring process is held."""

from __future__ import annotations

import os


def last_core() -> frozenset[int] | None:
    """The last core this process may use (the first ones serve most interrupts); None where there is no pinning."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    return frozenset({max(os.sched_getaffinity(0))})


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_variables(threads: int) -> dict[str, str]:
    """Environment variables that hold libraries to so many threads; each reads its own when it is loaded."""
    names = (
        "HL_NUM_THREADS",
        "MKL_NUM_THREADS",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "TVM_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    )
    return dict.fromkeys(names, str(threads))
