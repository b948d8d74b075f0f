"""Compiling many cases at once, each distinct compile only once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

from harness.compile.build import BuildCache
from harness.compile.request import CompileRequest, cache_key
from harness.records.run import Build

_TICK_S = 0.5


@dataclass(frozen=True, kw_only=True)
class Underway:
    """The cases that are being compiled; of those that share one compile, the first."""

    cases: tuple[str, ...]


def compile_cases(
    requests: Sequence[CompileRequest],
    cache: BuildCache,
    jobs: int,
) -> Iterator[tuple[Build, str] | Underway]:
    """Compile cases in up to `jobs` processes at once; builds come as they end, while the caller is busy too.

    Cases with the same cache key (one module for several devices, say) share one compile.

    Yields:
        Each case's build, and all that its compiler printed on stderr; between them, about twice a second, what is
        being compiled.

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
            if pending:
                names = [sharing[future][0].case.name for future in pending if future.running()]
                yield Underway(cases=tuple(sorted(names)))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
