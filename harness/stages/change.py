"""A run's largest change -> its sentence, its cause, and a folder that shows it: how `harness bench` ends."""

import math
from dataclasses import dataclass, replace
from pathlib import Path

from harness.compare.judge import CHANGED, judge_recorded, rules_of
from harness.compare.pairs import TOOLCHAIN_PREFIX, Pair, Side, pair_releases, pair_variants
from harness.compare.sides import noise_of, toolchains_here
from harness.errors import HarnessError, Interrupted
from harness.explain.summary_sentence import cause_of, change_sentence
from harness.metrics import LATENCY
from harness.progress import Progress
from harness.records.case import Case
from harness.records.comparison import Row
from harness.report.run_report import Report
from harness.stages.explaining import AskedPair, explain_and_keep
from harness.stages.options import BenchOptions, ExplainOptions
from harness.stages.reproducer import labels_of_cases, name_of_cases, write_reproducer
from harness.stages.session import policy_of
from harness.store.evidence import find_failure

# Of an answer that somebody waits for; `harness explain` takes its time.
_BUDGET_S = 10.0
_CAP_S = 30.0
_NOT_AGAIN = "measured once more for its cause, both take as long"


@dataclass(frozen=True, kw_only=True)
class Change:
    """Two cases of a run, or one that failed."""

    side: Side
    base: Case | None
    head: Case
    row: Row | None = None  # Of the two, by what the run recorded; None where one of them was not timed
    cause: str = ""

    @property
    def is_certain(self) -> bool:
        """Whether there is a change to be told."""
        return self.row is not None and self.row.verdict in CHANGED

    @property
    def sentence(self) -> str:
        """How much it is, with its interval, and why."""
        assert self.row is not None and self.base is not None  # noqa: S101 (whoever asks knows that it is certain)
        row = replace(self.row, case=name_of_cases(self.base, self.head))
        return change_sentence(row, labels_of_cases(self.base, self.head), self.cause)

    def reproduced_in(self, folder: Path) -> Path:
        """The script of a reproducer."""
        base = (self.side, self.base) if self.base is not None else None
        return write_reproducer(folder, base=base, head=(self.side, self.head), measured=self.row, cause=self.cause)


def largest_change(report: Report) -> Change | None:
    """The largest change between neighbouring releases, or of a variant to its baseline; else a case that failed."""
    timings = report.timings
    side = timings.side
    if len(side.toolchains) > 1:
        pairs = pair_releases(side, lambda case: timings.medians(case).size > 0, to="last")
    else:
        pairs = [pair for pair in pair_variants(side) if pair.base is not None]
    rule = rules_of(side.run.header, side.label)[LATENCY.name]
    judged = judge_recorded({pair.name: pair for pair in pairs}, timings, timings, rule)
    rows = [(pair, judged[pair.name].row) for pair in pairs]
    found = [Change(side=side, base=pair.base, head=pair.case, row=row) for pair, row in rows if row.ratio]
    builds = side.evidence.builds
    compiled = [
        case for case in side.run.header.cases if (build := builds.get(case.name)) is not None and build.command
    ]
    failed = [
        Change(
            side=side,
            base=next((each for each in compiled if each.group == case.group and each is not case), None),
            head=case,
        )
        for case in reversed(compiled)
        if find_failure(case, side.evidence, timed=True) is not None
    ]
    certain = [(abs(math.log(change.row.ratio or 1)), change) for change in found if change.is_certain and change.row]
    return max(certain, key=lambda each: each[0])[1] if certain else next(iter([*failed, *found]), None)


def explained(change: Change, options: BenchOptions, progress: Progress) -> Change:
    """The change with its cause, as a short explanation finds it, which is kept beside the run."""
    assert change.base is not None  # noqa: S101 (a change that is certain has both)
    within = change.base.toolchain == change.head.toolchain
    base, head = (change.side if within else _under(change.side, case.toolchain) for case in (change.base, change.head))
    pair = Pair(
        name=change.head.name if within else name_of_cases(change.base, change.head), base=change.base, head=change.head
    )
    asked = AskedPair(pair=pair, base=base, head=head, within=within)
    rule = rules_of(change.side.run.header, change.side.label)[LATENCY.name]
    noise = noise_of(change.side.run.environment_of(change.head))
    settings = ExplainOptions(results=options.results, wait=options.wait)
    policy = policy_of(settings, rule, budget_s=_BUDGET_S, cap_s=_CAP_S, noise=noise)
    progress.note(f"Explaining {change.head.name}; --no-explain leaves that out")
    try:
        toolchains = toolchains_here((base, head), progress.note)
        explanation, path = explain_and_keep(asked, toolchains, policy, progress, options.results)
    except Interrupted:
        raise
    except HarnessError as error:
        return replace(change, cause=f"why is not known ({error})")
    progress.note(f"Kept in {path}; `harness report {path}` prints all of the explanation")
    latency = explanation.latency
    if latency.verdict == "unchanged":
        return replace(change, cause=_NOT_AGAIN)
    if latency.verdict in CHANGED:
        return replace(change, row=latency, cause=cause_of(explanation))
    assert change.row is not None  # noqa: S101 (as above)
    return replace(change, cause=cause_of(explanation, change.row.verdict))


def _under(side: Side, release: str) -> Side:
    """The run as if it had this release alone."""
    header = replace(side.run.header, toolchains=(side.toolchains[release],))
    return Side(replace(side.run, header=header), f"{TOOLCHAIN_PREFIX}{release}")
