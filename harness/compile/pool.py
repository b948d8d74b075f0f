"""Compiling many cases at once, each distinct compile only once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace

from harness.compile.build import BuildCache
from harness.compile.request import CompileRequest, cache_key
from harness.results.records import Build

_TICK_S = 0.5


def compile_cases(
    requests: Sequence[CompileRequest],
    cache: BuildCache,
    jobs: int,
    on_tick: Callable[[Sequence[str]], None],
) -> Iterator[tuple[Build, str]]:
    """Compile cases in up to `jobs` processes at once; builds come as they end.

    Cases with the same cache key (one module for several devices, say) share one compile.

    Args:
        on_tick: Called twice a second with the names of the cases that are being compiled.

    Yields:
        Each case's build, and all that its compiler printed on stderr.

    Raises:
        OSError: The cache cannot be written.
    """
    by_key: dict[str, list[CompileRequest]] = {}
    for request in requests:
        by_key.setdefault(cache_key(request), []).append(request)
    pool = ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="compile")
    try:
        sharing = {pool.submit(cache.compile, alike[0]): alike for alike in by_key.values()}
        pending: set[Future[tuple[Build, str]]] = set(sharing)
        while pending:
            done, pending = wait(pending, timeout=_TICK_S, return_when=FIRST_COMPLETED)
            for future in done:
                build, stderr = future.result()
                for request in sharing[future]:
                    yield replace(build, case=request.case.name), stderr
            on_tick([sharing[future][0].case.name for future in pending if future.running()])
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
