"""Searches -> what the harness's own commands say of them, in folders; what is there already is not made again.

<out>/<part>/<model>/
    tuned/             what `harness tune` leaves behind
    no-start.txt       instead, why the search has nothing to begin with
    beside.toml, beside/          the suite with the variant in it, and its run
    against-<variant>.toml, ...   the same with another baseline, its run and its comparison
<out>/again/<day>-<load>-<machine>/<part>/<model>/   the variant and the baseline, measured once more
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import tomli_w

from benchmarks.tune.searches import DEVICE, Search
from benchmarks.verdicts.recording import Hogs
from harness import process
from harness.machine.environment import capture_environment
from harness.records.comparison import Row
from harness.records.run import Run
from harness.records.tuning import Tuning
from harness.store.folders import COMPARISON, TUNING
from harness.store.run_directory import HEADER_FILE, load_run
from harness.store.work_directory import VARIANT_FILE
from harness.suite.model_files import moved_model, moved_path
from harness.suite.schema import SuiteFile
from harness.suite.toml_file import read_toml

ROOT = Path(__file__).parents[2]
HARNESS = Path(sys.executable).with_name("harness")
# Exit statuses of a command that did its work: all is well, a regression, a case failed, a row stayed open.
_DONE = (0, 1, 3, 4)
# How a variant is measured once more: with nothing else on the machine, or while other processes come and go.
ALONE, LOADED = "alone", "loaded"
# Seconds for looking at a row of a comparison, and for a variant that is measured once more.
_ROW_S, _AGAIN_S = 60.0, 60.0
# Of a suite that is measured, what has nothing to do with times, and some of which makes compiles longer.
_LEFT_OUT = ("ir", "groups", "gates", "storage")


@dataclass(frozen=True, kw_only=True)
class Measuring:
    """Where everything goes, and how it is measured.

    Attributes:
        wait: Whether to wait while another harness measures on this machine.
    """

    out: Path
    wait: bool = True

    def folder(self, search: Search) -> Path:
        """Of a search and what follows it."""
        return self.out / search.name

    def tuned(self, search: Search) -> Path:
        """What `harness tune` leaves behind for it."""
        return self.folder(search) / "tuned" / f"{search.model}@{DEVICE}"

    # --- the search ---

    def tune(self, search: Search) -> Tuning | None:
        """Search, or go on where an earlier call was stopped; None: what it begins with cannot be measured."""
        no_start = self.folder(search) / "no-start.txt"
        if not no_start.is_file() and not TUNING.is_at(self.tuned(search)):
            options = ["--model", search.model, "--device", DEVICE, "--budget", f"{search.budget_s:g}s"]
            options += ["--variant", search.start] if search.start else []
            options += [word for pattern in search.without for word in ("--without", pattern)]
            words = ["tune", search.suite, *options, "--out", str(self.folder(search) / "tuned"), "--format", "json"]
            done = self.call(words)
            if not TUNING.is_at(self.tuned(search)):
                if done.returncode != 3:
                    raise RuntimeError(f"{search.name}: harness {' '.join(words)} says {done.stderr[-2000:]}")
                no_start.parent.mkdir(parents=True, exist_ok=True)
                no_start.write_text(done.stderr)
        return self.found(search)

    def found(self, search: Search) -> Tuning | None:
        """What a search has found; None: it has not ended, or has nothing to begin with."""
        return TUNING.load(self.tuned(search)) if TUNING.is_at(self.tuned(search)) else None

    def why_no_start(self, search: Search) -> str:
        """Why a search has nothing to begin with; "": it has, or nobody tried."""
        file = self.folder(search) / "no-start.txt"
        lines = file.read_text().strip().splitlines() if file.is_file() else []
        return lines[-1] if lines else ""

    # --- what follows it ---

    def beside(self, search: Search, tuning: Tuning) -> Run:
        """The result, hand-made variants and other engines in the same rounds."""
        suite = self._suite(search, tuning, "beside")
        return self._run(suite, self.folder(search) / "beside", search, (head_of(tuning), *search.beside))

    def measured_beside(self, search: Search) -> Run | None:
        """What `beside` has measured; None: nothing yet."""
        return finished_in(self.folder(search) / "beside")

    def judge(self, search: Search, tuning: Tuning, base: str) -> Row | None:
        """The result against a variant by `harness compare`; None: nothing was found to be compared."""
        if not tuning.variant:
            return None
        folder = self.folder(search) / f"against-{base}"
        if (row := self.judged(search, base)) is None:
            suite = self._suite(search, tuning, folder.name, baseline=base)
            self._run(suite, folder, search, (base, tuning.variant), measure=False)
            words = ["compare", "--within", str(_newest(folder)), "--filter", search.case(tuning.variant)]
            words += ["--row-budget", f"{_ROW_S:g}", "--compile-budget", "0", "--results", str(folder)]
            said = self.call([*words, "--format", "json"]).stderr
            if (row := self.judged(search, base)) is None:
                raise RuntimeError(f"{search.name} is not compared with {base}: {said[-2000:]}")
        return row

    def judged(self, search: Search, base: str) -> Row | None:
        """What `judge` has found; None: nothing yet."""
        folder = self.folder(search) / f"against-{base}"
        rows = [
            row for each in sorted(folder.glob("*")) if COMPARISON.is_at(each) for row in COMPARISON.load(each).rows
        ]
        return next((row for row in rows if row.metric == "latency"), None)

    def again(self, search: Search, tuning: Tuning, *, loaded: bool) -> Run:
        """The result beside the baseline once more, today: a fresh run, alone or while other processes compute."""
        machine = capture_environment()["machine"].get("id", "unknown")
        when = f"{datetime.now(timezone.utc):%Y-%m-%d}-{LOADED if loaded else ALONE}-{machine}"
        folder = self.out / "again" / when / search.name
        suite = self._suite(search, tuning, "again")
        with Hogs("hogs that come and go" if loaded else ""):
            return self._run(suite, folder, search, (tuning.variant,), seconds=min(_AGAIN_S, search.beside_s))

    def measured_again(self, search: Search) -> Mapping[str, Run]:
        """What `again` has measured, by day, load and machine."""
        folders = sorted(self.out.glob(f"again/*/{search.name}"))
        runs = {folder.relative_to(self.out / "again").parts[0]: finished_in(folder) for folder in folders}
        return {day: run for day, run in runs.items() if run is not None}

    # --- suites, runs and commands ---

    def _suite(self, search: Search, tuning: Tuning, name: str, *, baseline: str = "") -> Path:
        """The search's suite with the variant that was found, in the search's folder."""
        origin, file = ROOT / search.suite, self.folder(search) / f"{name}.toml"
        content = read_toml(origin, SuiteFile)[0].model_dump(exclude_none=True, exclude_defaults=True)
        table = {key: value for key, value in content.items() if key not in _LEFT_OUT}
        table["models"] = {key: moved_model(each, origin, file.parent) for key, each in table["models"].items()}
        for key in ("flagset_files", "variant_files"):
            table[key] = [moved_path(each, origin, file.parent) for each in table.get(key, [])]
        if tuning.variant:
            table["variant_files"].append(str((self.tuned(search) / VARIANT_FILE).resolve()))
        if baseline:
            table["baseline"] = baseline
        file.write_text(tomli_w.dumps(table))
        return file

    def _run(
        self,
        suite: Path,
        folder: Path,
        search: Search,
        variants: Sequence[str],
        *,
        seconds: float | None = None,
        measure: bool = True,
    ) -> Run:
        """A run of these variants and the suite's baseline, gone on with where one was stopped."""
        if (run := finished_in(folder)) is not None:
            return run
        begun = _newest(folder)
        words = ["run", "--resume", str(begun)]
        if begun is None:
            words = ["run", str(suite), "--results", str(folder)]
            words += [word for variant in variants for word in ("--filter", search.case(variant))]
            words += ["--budget", f"{seconds or search.beside_s:g}", "--generations", f"{search.generations}"]
            words += [] if measure else ["--no-measure"]
        done = self.call([*words, "--format", "json"])
        if (run := finished_in(folder)) is None:
            raise RuntimeError(f"{search.name}: harness {' '.join(words)} says {done.stderr[-2000:]}")
        return run

    def call(self, words: Sequence[str], environment: Mapping[str, str] | None = None) -> process.Finished:
        """Call the harness.

        Args:
            environment: Variables to add to this process's own.

        Raises:
            RuntimeError: It did not do its work.
        """
        sys.stderr.write(f"harness {' '.join(words)}\n")
        command = [str(HARNESS), *words, "--quiet", *([] if self.wait else ["--no-wait"])]
        done = process.run(command, cwd=ROOT, env=environment)  # which is ended with this one
        if done.returncode not in _DONE:
            raise RuntimeError(f"harness {' '.join(words)} ends with {done.returncode}: {done.stderr[-2000:]}")
        return done


def head_of(tuning: Tuning) -> str:
    """What a search leaves its user with: the variant that it wrote, or what it began with."""
    return tuning.variant or tuning.start


def _newest(folder: Path) -> Path | None:
    """The newest run in a folder."""
    return max((file.parent for file in folder.glob(f"*/{HEADER_FILE}")), default=None)


def finished_in(folder: Path) -> Run | None:
    """The newest run in a folder, if it has ended."""
    newest = _newest(folder)
    run = load_run(newest) if newest is not None else None
    return run if run is not None and run.finished else None
