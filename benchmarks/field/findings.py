"""Steps between releases -> findings: each step explained on its largest case, and steps of one cause told once."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pandas as pd

from benchmarks.field.parts import FLOOR, KEPT, RESULTS, ROOT, SUITE, public, read_json, write_json
from benchmarks.field.upstream import Report, report_of
from harness.cache import write_atomically
from harness.compare.judge import CHANGED
from harness.errors import ExitCode, RunError
from harness.explain.ir_diff import SAME_CODE, VAGUE
from harness.records.explanation import Explanation
from harness.records.explanation import Part as Dispatches
from harness.store.folders import EXPLANATION, folder_names
from harness.verify.reference import ADVICE

EXPLAINED = KEPT / "explained"
# Wall seconds of looking at dispatches; a step of 10 % and more shows soon.
BUDGET_S = 8
# The dispatch that changes most is the cause of a step of which it has more than this share.
_MUCH = 0.2
# What a dispatch without a time is chosen last by: it says where the IR differs and not how, or that nothing does.
_VAGUE = (VAGUE, SAME_CODE)
_CALLED, _IS_CALLED = "a contraction", "a generic sum of products"  # In explanations of earlier days, and now
_NUMBERS = re.compile(r"\d+(?:, \d+)*")


@dataclass(frozen=True, kw_only=True)
class Step:
    """A line that takes another time under a release than under the one before it."""

    line: str  # model/variant@device
    model: str
    variant: str
    device: str
    before: str
    after: str
    ratio: float
    low: float | None
    high: float | None
    base_ns: float
    head_ns: float
    base_faults: float  # Pages that a call faults in; NaN: not known, as on two threads
    head_faults: float
    part: str  # The name of the part that measured it
    decided: bool  # False: it looks like a step, and what the run measured is too little to call it one

    @property
    def size(self) -> float:
        """How far the ratio is from 1, either way, in the logarithm."""
        return abs(math.log(self.ratio))

    @property
    def direction(self) -> str:
        """`slower` or `faster`."""
        return "slower" if self.ratio > 1 else "faster"

    @property
    def on_threads(self) -> bool:
        """Whether it was measured on two threads."""
        return self.device.endswith("threads")

    @property
    def change(self) -> tuple[str, str, str, str, str]:
        """What one explanation is for: a model's variant between two releases, slower or faster on whatever device."""
        return self.model, self.variant, self.before, self.after, self.direction


@dataclass(frozen=True, kw_only=True)
class Change:
    """The steps of a model's variant between two releases, on whatever device, with the explanation of one of them."""

    steps: tuple[Step, ...]  # The largest first
    explanation: Explanation | None
    reason: str = ""  # Why there is none

    @property
    def largest(self) -> Step:
        """The largest step, which explain looks at."""
        return self.steps[0]

    @property
    def decided(self) -> list[Step]:
        """Those of its steps that the run decided."""
        return [step for step in self.steps if step.decided]

    @property
    def is_there(self) -> bool:
        """Whether it was seen again when it was explained, or was decided on one thread and explain saw no less.

        The few generations on two threads agree by chance now and then, so that one run is not enough there.
        """
        latency = self.explanation.latency if self.explanation is not None else None
        wanted = "regressed" if self.largest.ratio > 1 else "improved"
        seen_again = latency is not None and latency.verdict == wanted
        less = self.explained.line if self._was_less else ""
        return seen_again or any(not step.on_threads and step.line != less for step in self.decided)

    @property
    def _was_less(self) -> bool:
        """Whether explain, which measured it once more, saw less than half of it (in the logarithm)."""
        latency = self.explanation.latency if self.explanation is not None else None
        half = math.sqrt(self.explained.ratio)
        if latency is None or latency.ci_low is None or latency.ci_high is None:
            return False
        return latency.ci_high < half if half > 1 else latency.ci_low > half

    @property
    def explained(self) -> Step:
        """The step that the explanation is of; the largest where there is none, or none of the same target."""
        case = self.explanation.case if self.explanation is not None else ""
        return next((step for step in self.steps if step.line == case), self.largest)

    @property
    def has_same_code(self) -> bool:
        """Whether the compiler does the same on both sides, as far as explain sees."""
        found = self.explanation
        if found is None or found.schedule or any(part.differs_at for part in found.parts):
            return False
        return any(step.line == found.case for step in self.steps)  # another target may have other code

    @property
    def part(self) -> Dispatches | None:
        """Of the explanation, the dispatches that make most of the step and differ in a way that is known."""
        if self.explanation is None:
            return None
        wanted, step = 1 if self.largest.ratio > 1 else -1, self.explained
        told = [part for part in self.explanation.parts if part.what]
        timed = [part for part in told if part.is_timed and wanted * part.change_ns > 0]
        largest = max(timed, key=lambda part: abs(part.change_ns), default=None)
        if largest is not None and abs(largest.change_ns) > _MUCH * abs(step.head_ns - step.base_ns):
            return largest
        # Of open sizes, no dispatch runs alone, so that none has a time.
        untimed = (part for part in told if not part.is_timed)
        return min(untimed, key=lambda part: [text in part.what[0] for text in reversed(_VAGUE)], default=largest)

    def report(self, reports: Sequence[Report]) -> Report | None:
        """What upstream says of it."""
        said = list(self.part.what) if self.part is not None else []
        if self.explanation is not None and self.part is not None and not self.part.is_timed:  # any of them may be it
            said += [text for part in self.explanation.parts if not part.is_timed for text in part.what]
        said += [self.explanation.sentence.partition(": ")[2]] if self.explanation is not None else []
        cases = [step.line for step in self.steps]
        return report_of(reports, self.largest.direction, self.largest.after, said, cases)

    def cause(self, reports: Sequence[Report]) -> tuple[str, ...]:
        """What changes of one cause have in common: direction, releases, and a report or what differs without sizes."""
        first, part, report = self.largest, self.part, self.report(reports)
        told = f"{first.model}/{first.variant}"
        if part is not None and not any(text in part.what[0] for text in _VAGUE):
            told = _NUMBERS.sub("#", part.what[0])
        if report is not None and not report.near:
            told = report.text
        return first.direction, first.before, first.after, told


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Changes of one cause."""

    changes: tuple[Change, ...]  # That of the largest step first
    report: Report | None = None

    @property
    def steps(self) -> list[Step]:
        """Of all its changes, the decided first, and of these the largest."""
        steps = (step for change in self.changes for step in change.steps)
        return sorted(steps, key=lambda step: (not step.decided, -step.size))

    @property
    def weight(self) -> float:
        """What findings are ranked by: the sizes of its decided steps, added up."""
        return sum(step.size for step in self.steps if step.decided)

    @property
    def slug(self) -> str:
        """Its name in paths: the direction, the release, and its largest case."""
        first = self.changes[0].largest
        variant = "" if first.variant == "stock" else f"-{first.variant}"
        return f"{first.direction}-{first.after}-{first.model}{variant}".replace(".", "-")


def read_table(name: str) -> pd.DataFrame:
    """A table of all parts that are kept: `lines` or `steps`."""
    tables = [_read(file) for file in sorted(KEPT.glob(f"*-{name}.parquet"))]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _read(file: Path) -> pd.DataFrame:
    try:
        table: pd.DataFrame = duckdb.read_parquet(str(file)).df()
    except duckdb.Error as error:
        raise RunError(
            f"{file} is damaged ({str(error).splitlines()[0]}); remove it, or take it from git again"
        ) from None
    return table


def found_steps(table: pd.DataFrame) -> list[Step]:
    """The steps of a table, the largest first, and what looks like one: its interval is beyond 1; controls left out."""
    decided = table["verdict"].isin(CHANGED)
    slower = (table["low"] > 1) & (table["ratio"] > 1 + FLOOR)
    faster = (table["high"] < 1) & (table["ratio"] < 1 / (1 + FLOOR))
    found = table.assign(decided=decided)[(decided | slower | faster) & ~table["control"]]
    rows = (row | {side: public(row[side]) for side in ("before", "after")} for row in found.to_dict("records"))
    steps = [Step(**{name: row[name] for name in Step.__dataclass_fields__}) for row in rows]
    return sorted(steps, key=lambda step: (not step.decided, -step.size))


def changes_of(steps: Sequence[Step]) -> list[Change]:
    """The steps by what explains them, with what is kept of their explanations."""
    by_change: dict[tuple[str, ...], list[Step]] = {}
    for step in steps:
        by_change.setdefault(step.change, []).append(step)
    return [
        Change(steps=tuple(own), explanation=explanation, reason=reason)
        for own in by_change.values()
        for explanation, reason in [_kept(own[0])]
    ]


def findings_of(changes: Sequence[Change], reports: Sequence[Report] = ()) -> list[Finding]:
    """Changes of one cause together, the weightiest finding first; those of the same code are left out."""
    by_cause: dict[tuple[str, ...], list[Change]] = {}
    there = [change for change in changes if change.is_there and not change.has_same_code]
    for change in sorted(there, key=lambda change: (not change.largest.decided, -change.largest.size)):
        by_cause.setdefault(change.cause(reports), []).append(change)
    findings = [Finding(changes=tuple(own), report=own[0].report(reports)) for own in by_cause.values()]
    return sorted(findings, key=lambda finding: -finding.weight)


# --- Explaining ---


def explain_all(steps: Sequence[Step], *, seconds: float) -> int:
    """Explain the largest step of each change that is not explained yet; how many are left after these seconds."""
    wanted = [change.largest for change in changes_of(steps) if change.explanation is None and not change.reason]
    started = time.monotonic()
    for number, step in enumerate(wanted):
        spent = time.monotonic() - started
        if spent > seconds:
            return len(wanted) - number
        left = f", about {spent / number * (len(wanted) - number) / 60:.0f} min left" if number else ""
        sys.stderr.write(f"explain {number + 1}/{len(wanted)}{left}: {step.line}, {step.before} to {step.after}\n")
        _explain(step)
    return 0


def _explain(step: Step) -> None:
    kept, before = EXPLAINED / _slug(step), set(folder_names(RESULTS, "explanation"))
    sides = [f"iree=={step.before}", f"iree=={step.after}", step.line, "--suite", SUITE]
    words = [*sides, "--budget", str(BUDGET_S), "--row-cap", "30", "--results", str(RESULTS), "--quiet"]
    command = [sys.executable, "-m", "harness", "explain", *words]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    found = sorted(set(folder_names(RESULTS, "explanation")) - before)
    if done.returncode == 0 and found:
        file = "explanation.json"
        write_atomically(kept / file, (RESULTS / found[-1] / file).read_bytes())
        return
    said = (done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"])[-1].replace(f"{ROOT}/", "")
    if done.returncode != ExitCode.CASE_FAILED:  # it says nothing of the change, and may not be so next time
        raise RunError(f"{step.line} was not explained: {said.removeprefix('harness: ')}")
    write_json(kept / "reason.json", said)


def _kept(step: Step) -> tuple[Explanation | None, str]:
    folder = EXPLAINED / _slug(step)
    if EXPLANATION.is_at(folder):
        text = (folder / EXPLANATION.file).read_text().replace(_CALLED, _IS_CALLED)
        return EXPLANATION.parse(text, str(folder / EXPLANATION.file)), ""
    return None, read_json(folder / "reason.json") or ""


def _slug(step: Step) -> str:
    return "-".join(step.change)


# --- What fails, or is wrong ---


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A message with which lines fail, or give wrong outputs, and under which releases."""

    state: str  # `fails` or `wrong`
    lines: Mapping[str, tuple[str, ...]]  # By name, the releases
    why: str  # Of the first of them
    report: Report | None = None

    @property
    def slug(self) -> str:
        """Its name in paths: what it is, and its first model."""
        line, releases = next(iter(self.lines.items()))
        return f"{self.state}-{releases[-1]}-{line.partition('/')[0]}".replace(".", "-")


def faults_of(table: pd.DataFrame, reports: Sequence[Report] = ()) -> list[Fault]:
    """What fails or is wrong, by message and report, wrong outputs first."""
    bad = table[table["state"].isin(("fails", "wrong"))]
    found: dict[tuple[str, str, str], dict[str, dict[str, str]]] = {}
    for row in bad.to_dict("records"):
        why = row["why"].removesuffix(ADVICE)  # to a suite's author, who is not who reads this
        why = why.removeprefix("expected to fail: ").partition(": %")[0]  # whether the suite knows of it; IR
        report = report_of(reports, row["state"], "", [why], [])
        key = row["state"], _NUMBERS.sub("#", why), report.text if report is not None else ""
        if row["state"] == "wrong":  # its numbers are its program's
            key = row["state"], row["model"], ""
        found.setdefault(key, {}).setdefault(row["line"], {})[public(row["release"])] = why
    return sorted(
        _faults(found, reports), key=lambda fault: (fault.state != "wrong", -sum(map(len, fault.lines.values())))
    )


def _faults(
    found: Mapping[tuple[str, str, str], Mapping[str, Mapping[str, str]]], reports: Sequence[Report]
) -> Iterator[Fault]:
    for (state, *_), lines in found.items():
        why = next(iter(next(iter(lines.values())).values()))
        releases = {line: tuple(reasons) for line, reasons in lines.items()}
        report = report_of(reports, state, "", [why], [*lines])
        yield Fault(state=state, lines=releases, why=why, report=report)
