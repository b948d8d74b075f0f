"""Measures what the processors of this machine reach, in a process of its own.

It runs by path under a toolchain's own Python: stdlib, numpy and iree.runtime only. Its argument, in JSON, is
    {"threads": n, "cpus": [...], "module": file or null, "elements": n, "operations": n}
with a module whose function `main` does so many operations on so many elements. It prints
    {"operations_per_s": {program: figure}, "bytes_per_s": {program: figure}}
"""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

# The peak is what the machine can do, so each program's best call counts, of those that fit into this time.
_SECONDS = 0.15
_LEAST_CALLS = 3
_MATRICES = (384, 768)
# Of each of three arrays: far more than caches hold, and bounded where there is little memory.
_ARRAY_BYTES = 96 << 20
_MEMORY_SHARE = 16


def best_s(call: Callable[[], object]) -> float:
    """Seconds of the fastest call."""
    call()
    best, calls, end = float("inf"), 0, time.perf_counter() + _SECONDS
    while calls < _LEAST_CALLS or time.perf_counter() < end:
        started = time.perf_counter()
        call()
        best, calls = min(best, time.perf_counter() - started), calls + 1
    return best


def matrix_products() -> dict[str, float]:
    """Operations a second of numpy's sgemm."""
    import numpy as np

    found = {}
    for size in _MATRICES:
        left, right = (np.full((size, size), value, np.float32) for value in (0.5, 0.25))
        out = np.empty_like(left)
        seconds = best_s(partial(np.matmul, left, right, out=out))
        found[f"sgemm {size}"] = 2 * size**3 / seconds
    return found


def multiply_adds(module: str, elements: int, operations: int, threads: int) -> dict[str, float]:
    """Operations a second of a loop that IREE compiled."""
    import iree.runtime as rt
    import numpy as np

    if threads > 1:
        rt.flags.parse_flags(f"--task_topology_group_count={threads}")
    device, instance = rt.get_device("local-sync" if threads == 1 else "local-task"), rt.VmInstance()
    loaded = rt.VmModule.mmap(instance, module)
    context = rt.VmContext(instance, [rt.create_hal_module(instance, device), loaded])
    function = loaded.lookup_function("main")
    argument = device.allocator.allocate_buffer_copy(
        memory_type=int(rt.MemoryType.DEVICE_LOCAL),
        allowed_usage=int(rt.BufferUsage.DEFAULT),
        device=device,
        buffer=np.full(elements, 0.5, np.float32),
        element_type=rt.HalElementType.FLOAT_32,
    )
    arguments = rt.VmVariantList(1)
    arguments.push_ref(argument)
    return {"FMA loop": operations / best_s(lambda: context.invoke(function, arguments, rt.VmVariantList(1)))}


def streams(threads: int) -> dict[str, float]:
    """Bytes a second that numpy moves through arrays beyond the caches, each thread through its own part."""
    import numpy as np

    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 16 * _ARRAY_BYTES
    size = min(_ARRAY_BYTES, memory // _MEMORY_SHARE) // 4 // threads * threads
    first, second, third = (np.full(size, 1.0, np.float32) for _ in range(3))
    parts = [slice(number * size // threads, (number + 1) * size // threads) for number in range(threads)]
    programs: dict[str, tuple[int, Callable[[slice], object]]] = {
        "copy": (2, lambda part: np.copyto(third[part], first[part])),
        "add": (3, lambda part: np.add(first[part], second[part], out=third[part])),
        "dot": (2, lambda part: np.dot(first[part], second[part])),
    }
    found = {}
    with ThreadPoolExecutor(threads) as pool:
        for name, (arrays, stream) in programs.items():
            found[name] = arrays * 4 * size / best_s(partial(_on_all, pool, stream, parts))
    return found


def _on_all(pool: ThreadPoolExecutor, stream: Callable[[slice], object], parts: Sequence[slice]) -> None:
    list(pool.map(stream, parts))


def main() -> None:
    """Measure, and print."""
    request: dict[str, Any] = json.loads(sys.argv[1])
    if request["cpus"] and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, request["cpus"])
    threads = request["threads"]
    operations = matrix_products()
    if request["module"] is not None:
        operations |= multiply_adds(request["module"], request["elements"], request["operations"], threads)
    print(json.dumps({"operations_per_s": operations, "bytes_per_s": streams(threads)}))
    sys.stdout.flush()
    os._exit(0)  # as the measuring workers end: drivers may hang while they are torn down


if __name__ == "__main__":
    main()
