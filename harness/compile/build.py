"""[Case] -> [Build]: compiles, many at once, in a content-addressed cache that several harnesses may share."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock
from pydantic import TypeAdapter, ValidationError

from harness.compile.iree_compile import MODEL_FILE, MODULE_FILE, CompileRequest, cache_key, compile_request, printed_in
from harness.records.case import Case
from harness.records.run import Build, Failure
from harness.scratch import scratch_folder, sweep

_STDERR_FILE = "stderr.txt"
_BUILD = TypeAdapter(Build)


class BuildCache:
    """Compiled modules by cache key, in a folder.

    A build's folder holds the module, the program where plugins rewrote it (model.mlir), the files that plugins gave
    to the tools, what rewrites printed, and the facts.
    """

    FACTS_FILE = "build.json"

    def __init__(self, root: Path) -> None:
        self._builds = root / "builds"
        self._locks = root / "locks"
        self._scratch = root / "scratch"

    def module(self, build: Build) -> Path:
        """Where a build's module lies."""
        return self.folder(build.cache_key) / MODULE_FILE

    def program(self, build: Build) -> Path | None:
        """Where the program lies that plugins made of the model; None where the model itself was compiled."""
        return self.folder(build.cache_key) / MODEL_FILE if build.rewritten else None

    def files(self, build: Build) -> tuple[Path, ...]:
        """The files that plugins gave to the tools."""
        return tuple(self.folder(build.cache_key) / name for name in build.files)

    def printed(self, build: Build) -> str:
        """What the rewrites of a build that is kept printed, each below its plugin's name."""
        return printed_in(self.folder(build.cache_key))

    def find(self, key: str, case: str) -> Build | None:
        """The build with that key, if it is there and whole."""
        folder = self.folder(key)
        try:
            build = _BUILD.validate_json((folder / self.FACTS_FILE).read_bytes())
            whole = build.sizes is not None and (folder / MODULE_FILE).stat().st_size == build.sizes.module_bytes
        except (OSError, ValidationError):
            return None
        needed = (*build.files, *([MODEL_FILE] if build.rewritten else []))
        if not whole or not all((folder / name).is_file() for name in needed):
            return None
        return replace(build, case=case, cached=True)

    def compile(self, request: CompileRequest, key: str = "") -> tuple[Build, str]:
        """Compile a case, or take its build from the cache."""
        key = key or cache_key(request)
        if found := self.find(key, request.case.name):
            return found, ""
        for folder in (self._builds, self._locks, self._scratch):
            folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self._locks / f"{key}.lock"):
            if found := self.find(key, request.case.name):
                return found, ""
            with scratch_folder(self._scratch) as scratch:
                build, stderr = compile_request(request, key, scratch)
                shutil.rmtree(scratch / "steps", ignore_errors=True)
                if build.failure is None:
                    self._keep(build, stderr, scratch)
                return build, stderr

    def sweep(self) -> None:
        """Remove what killed harnesses left in the scratch folder."""
        sweep(self._scratch)

    def folder(self, key: str) -> Path:
        """Where a build lies, if it is there: whole once it has its facts, which are written last."""
        return self._builds / key[:2] / key

    def _keep(self, build: Build, stderr: str, scratch: Path) -> None:
        final = self.folder(build.cache_key)
        final.parent.mkdir(parents=True, exist_ok=True)
        if not build.rewritten:
            (scratch / MODEL_FILE).unlink()
        (scratch / _STDERR_FILE).write_text(stderr)
        (scratch / self.FACTS_FILE).write_bytes(_BUILD.dump_json(replace(build, case="", cached=False)))
        if final.exists():  # a build that `find` refused: its module was cut short
            shutil.rmtree(final)
        scratch.chmod(0o755)  # temporary folders are private
        scratch.replace(final)


_TICK_S = 0.5


@dataclass(frozen=True, kw_only=True)
class Underway:
    """The cases that are being compiled; of those that share one compile, the first."""

    cases: tuple[str, ...]


def compile_cases(
    requests: Sequence[CompileRequest],
    cache: BuildCache,
    jobs: int,
    refusal: Callable[[Case], Failure | None] = lambda _: None,
    on_end: Callable[[Case, Failure | None], object] = lambda *_: None,
) -> Iterator[tuple[Build, str] | Underway]:
    """Compile cases in up to `jobs` processes at once; builds come as they end, while the caller is busy too.

    Cases with the same cache key share one compile. Each case's build comes with all that its compiler printed on
    stderr; between them, about twice a second, what is being compiled. In another thread `refusal` says why a case is
    not compiled, when that would begin, and `on_end` is told when it has ended, before the next one begins.
    """
    by_key: dict[str, list[CompileRequest]] = {}
    for request in requests:
        by_key.setdefault(cache_key(request), []).append(request)

    def begin(key: str, alike: Sequence[CompileRequest]) -> tuple[Build, str]:
        refusals = [failure for request in alike if (failure := refusal(request.case)) is not None]
        if len(refusals) == len(alike) and cache.find(key, alike[0].case.name) is None:
            return Build(case=alike[0].case.name, command=(), cache_key="", failure=refusals[0]), ""
        build, stderr = cache.compile(alike[0])
        on_end(alike[0].case, build.failure)
        return build, stderr

    pool = ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="compile")
    try:
        sharing = {pool.submit(begin, key, alike): alike for key, alike in by_key.items()}
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
