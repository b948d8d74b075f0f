"""Run calls in fresh copies of the inputs, and keep what each printed and wrote."""

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path

from benchmarks.frozen.calls import Call
from benchmarks.frozen.printed import Rules, content, printed, structure, without_progress

ROOT = Path(__file__).parents[2]
FIXTURES = Path(__file__).parent / "inputs"
# Calls that time out hang; the slowest takes some ten seconds.
_SECONDS = 240


def record(calls: Sequence[Call], out: Path, harness: Path) -> dict[str, float]:
    """Run each call with this harness and write OUT/<name>.txt; files of earlier recordings in OUT are deleted.

    Returns the wall seconds of each call.

    Calls that run the compiler share one cache and go one after another, since what they print depends on what is
    cached. Each other call has an empty cache of its own.
    """
    out.mkdir(parents=True, exist_ok=True)
    for file in out.glob("*.txt"):
        file.unlink()
    with tempfile.TemporaryDirectory(prefix="frozen-") as folder:
        root = Path(folder).resolve()
        (root / "matplotlib").mkdir()
        _copy_inputs(root / "inputs")  # once, since the repository may change while calls run
        recorder = _Recorder(root, out, harness)
        with ThreadPoolExecutor(2) as pool:
            waiting = [pool.submit(recorder.keep, [call for call in calls if call.compiles])]
            waiting += [pool.submit(recorder.keep, [call]) for call in calls if not call.compiles]
            for each in waiting:
                each.result()
    return recorder.seconds


class _Recorder:
    """Where calls run, and with which harness."""

    def __init__(self, root: Path, out: Path, harness: Path) -> None:
        self._root = root
        self._out = out
        self._harness = harness
        self.seconds: dict[str, float] = {}
        self._begin = datetime.now(timezone.utc).replace(second=0, microsecond=0)

    def keep(self, calls: Sequence[Call]) -> None:
        """Run calls one after another and write their files."""
        for call in calls:
            self._keep(call)

    def _keep(self, call: Call) -> None:
        begin = time.monotonic()
        work = self._root / call.name / "work"
        shutil.copytree(self._root / "inputs", work)
        for edit in call.edits:
            edit(work)
        cache = self._root / ("compiled" if call.compiles else f"{call.name}/cache")
        environment = self._environment(cache) | dict(call.environment)
        for arguments in call.before:
            self._run(arguments, work, environment)
        before = _digests(work)
        finished = self._run(call.arguments, work, environment)
        rules = Rules({str(cache): "<cache>", str(work): "<work>", str(self._harness.parent): "<bin>"}, self._begin)
        parts = [f"$ harness {' '.join(call.arguments)}", f"exit status {finished.returncode}"]
        if call.prints == "structure" and finished.returncode != 2:
            parts += ["--- stdout, structure", structure(finished.stdout)]
        else:
            only_keys = call.prints == "stable"
            parts += ["--- stdout", printed(rules(finished.stdout), stable=only_keys)]
            parts += ["--- stderr", rules(without_progress(finished.stderr))]
        after = _digests(work)
        for name in sorted(before.keys() - after.keys()):
            parts.append(f"--- deleted {rules(name)}")
        for name in sorted(name for name, digest in after.items() if before.get(name) != digest):
            word = "changed" if name in before else "wrote"
            parts.append(f"--- {word} {rules(name)}")
            copied = after[name] in before.values() and not call.compiles
            parts.append("(a copy of an input)" if copied else rules(content(work / name, made_now=call.compiles)))
        (self._out / f"{call.name}.txt").write_text("\n".join(parts) + "\n", encoding="utf-8")
        shutil.rmtree(self._root / call.name)
        self.seconds[call.name] = time.monotonic() - begin

    def _run(
        self, arguments: Sequence[str], work: Path, environment: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self._harness), *arguments],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=_SECONDS,
            check=False,
        )

    def _environment(self, cache: Path) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("GITHUB_", "HARNESS_", "RUNNER_", "IREE_")) and name not in ("CI", "NO_COLOR")
        }
        return kept | {
            "PATH": f"{self._harness.parent}{os.pathsep}{os.environ['PATH']}",
            "HARNESS_CACHE": str(cache),
            "MPLCONFIGDIR": str(self._root / "matplotlib"),
            "COLUMNS": "120",
            "LINES": "40",
            "TERM": "dumb",
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
        }


def _copy_inputs(folder: Path) -> None:
    shutil.copytree(FIXTURES, folder)
    shutil.copytree(ROOT / "results" / "published", folder / "published")
    shutil.copytree(ROOT / "suites", folder / "suites")
    shutil.copytree(ROOT / "flagsets", folder / "flagsets")


def _digests(folder: Path) -> dict[str, str]:
    """Of every file below, by its path; locks are left out."""
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.rglob("*")
        if file.is_file() and not file.name.endswith(".lock")
    }
