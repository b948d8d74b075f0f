"""The line of `harness verdict`: a suite as it is now -> its case, compiled -> measured beside a run's -> good or bad.

What it says is for `git bisect run`, which asks a command at each commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.bisect.search import Unusable
from harness.bisect.trials import Place, try_pair
from harness.compare.sides import noise_of
from harness.errors import NothingSelected, RunError, ToolchainError, UsageError
from harness.metrics import FLOORS
from harness.progress import Progress
from harness.records.bisection import Trial
from harness.records.case import Case
from harness.records.comparison import Verdict
from harness.stages.bisect_session import make_place, place_in, require_metric
from harness.stages.options import VerdictOptions
from harness.stages.session import policy_of, toolchain_named
from harness.stats.rule import Rule
from harness.store.folders import find_folder
from harness.store.run_directory import load_run
from harness.text import did_you_mean, such_as
from harness.toolchain import Toolchain
from harness.toolchain.find import with_own_build
from harness.toolchain.host_cpu import environment_here

Word = Literal["good", "bad", "cannot tell"]
_GOOD: frozenset[Verdict] = frozenset({"unchanged", "improved", "identical"})


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What is said of the suite as it is now."""

    case: str
    word: Word
    reason: str  # Why, in plain words
    trial: Trial | None = None  # The measurement; None: it did not come to one


def judge_now(options: VerdictOptions, progress: Progress) -> Judged:
    """Say whether a case is as good as a run's.

    What is wrong with the suite or the compiler of this moment cannot tell; what is wrong with the question raises.
    """
    metric = require_metric(options.metric)
    path = find_folder(options.against, options.results, kind="run")
    run = load_run(path, rounds=False)
    case = _case_meant(options, path, run.header.cases)
    release = next(known.toolchain for known in run.header.cases if known.name == case)
    if not release:
        raise UsageError(f"--against {path}: {case} is run by another engine; name a case of a variant")
    recorded = next(record for record in run.header.toolchains if record.version == release)
    toolchain = toolchain_named(release, progress.note)
    if toolchain.compiler_sha256 != recorded.compiler_sha256 and not metric.exact:
        raise ToolchainError(f"{path}: IREE {release} here has another compiler than the run's; make the run again")
    good = place_in(path, "the run", case, toolchain)
    if isinstance(good, Unusable):
        raise RunError(f"--against {path}: {case} cannot be measured there: {good.reason}; give another run")
    counts = good.side.evidence.ir.get(case)
    if "/" in metric.name and (counts is None or metric.name not in counts.counts):
        raise UsageError(f"--metric {metric.name}: --against {path} did not count it; add it to the suite's [ir]")
    now = _now(options, case, toolchain, progress)
    if isinstance(now, Unusable):
        return Judged(case=case, word="cannot tell", reason=now.reason)
    floors = FLOORS | now.side.run.header.floors
    rule = Rule(floor=floors.get(metric.name, metric.floor) if options.floor is None else options.floor)
    noise = noise_of(environment_here())
    policy = policy_of(options, rule, budget_s=options.row_budget, cap_s=options.row_cap, noise=noise)
    trial = try_pair(good, now, metric, policy, progress)
    return Judged(case=case, word=word_of(trial.verdict), reason=trial.reason, trial=trial)


def word_of(verdict: Verdict) -> Word:
    """What a verdict is to a search that knows good and bad alone."""
    if verdict in _GOOD:
        return "good"
    return "bad" if verdict == "regressed" else "cannot tell"


def _case_meant(options: VerdictOptions, path: Path, cases: Sequence[Case]) -> str:
    """The case that the user names, or the only one of the run; what the suite of this moment has does not matter."""
    names = [case.name for case in cases]
    if options.case is None:
        own = [case.name for case in cases if case.peer is None]
        if len(own) != 1:
            raise UsageError(f"--against {path}: which case is not said; give it behind the suite{such_as(own)}")
        return own[0]
    if options.case not in names:
        hint = did_you_mean(options.case, names, f"; `harness report {path}` shows them all")
        raise UsageError(f"--against {path}: the run has no case {options.case!r}{hint}")
    return options.case


def _now(options: VerdictOptions, case: str, release: Toolchain, progress: Progress) -> Place | Unusable:
    """The case as the suite and the compiler have it now, or why it cannot be measured."""
    try:
        toolchain = with_own_build(release, compiler=options.compiler, runtime=options.runtime)
        others = (release,) if release.version != toolchain.version else ()
        return make_place("now", options.suite, case, toolchain, options, progress, others=others)
    except (ToolchainError, NothingSelected) as error:
        return Unusable(reason=str(error))
