"""`harness selfcheck`: how often this machine's verdicts are wrong, and how small a change they see.

Every case's module is compared with itself, again and again, exactly as `harness compare` compares two modules. Any
row that is called regressed or improved is a false alarm, and the spread that is measured on the way says how large a
change would have been found.
"""

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any

import numpy as np

from harness.cache import write_atomically
from harness.compare.engine import Outcome, Task, decide
from harness.compare.judge import CHANGED, rules_of
from harness.compare.options import SelfcheckOptions
from harness.compare.pairs import Side
from harness.compare.samplers import CacheMiss, MeasurementPolicy, find_module, latency_task
from harness.errors import RunError
from harness.machine.environment import machine_id, selfcheck_file
from harness.measure.session import only_one_measures
from harness.metrics import LATENCY
from harness.options import CALL_LIMIT_S
from harness.progress import Progress
from harness.records.case import Case
from harness.records.comparison import SelfcheckFacts
from harness.records.run import ToolchainRecord
from harness.stats.intervals import rate_bounds
from harness.stats.rule import Rule, detectable_change
from harness.store.evidence import find_failure
from harness.toolchain import Toolchain


@dataclass(frozen=True, kw_only=True)
class CaseCheck:
    """What rows of one case against itself gave."""

    case: str
    rows: int  # How often the case was compared with itself
    flagged: int  # How many of these were called regressed or improved
    inconclusive: int  # How many were not shown to be equal within the budget
    failed: int
    spread: float | None  # Standard deviation between generations of the log ratio
    # Smallest change that nine of ten rows would find in their budget; None: not even twice the time
    detects: float | None
    seconds: float  # Mean wall time of a row
    latency_ns: float | None  # Of one call, the median over generations


@dataclass(frozen=True, kw_only=True)
class Selfcheck:
    """A whole check; `facts` is what every later report prints."""

    machine: str  # Id of the machine, as in a run's environment
    facts: SelfcheckFacts
    budget_s: float  # Wall seconds of each row
    floor: float  # Relative change below which nothing is called changed
    cases: tuple[CaseCheck, ...]


def check_machine(
    side: Side,
    toolchains: Mapping[ToolchainRecord, Toolchain],
    environment: Mapping[str, Mapping[str, Any]],
    options: SelfcheckOptions,
    progress: Progress,
) -> Selfcheck:
    """Compare every distinct module of a run with itself, case after case, and keep the result for later reports."""
    cases = _measurable(side)
    if not cases:
        raise RunError(f"{side.label}: no case of it can be measured here; `harness list` says why each is skipped")
    rule = rules_of(side.run.header, side.label, options.floor)[LATENCY.name]
    tasks = [_task(side, case, toolchains[side.toolchains[case.toolchain]], rule, options) for case in cases]
    times = -(-options.rows // len(tasks))
    found: dict[str, list[Outcome]] = {task.name: [] for task in tasks}
    with only_one_measures(progress.note, wait=options.wait):
        progress.stage("A/A rows", times * len(tasks))
        for _ in range(times):
            for task in tasks:
                progress.step(task.name, advance=0)
                found[task.name].extend(decide([task]))
                progress.step(task.name)
    checks = tuple(_summary(name, outcomes, rule, options) for name, outcomes in found.items())
    result = Selfcheck(
        machine=machine_id(environment),
        facts=_facts(checks, side, options),
        budget_s=options.row_budget,
        floor=rule.floor,
        cases=checks,
    )
    path = selfcheck_file()
    try:
        write_atomically(path, json.dumps(asdict(result), allow_nan=False).encode())
    except OSError as error:
        raise RunError(f"{path}: cannot be written ({error.strerror}); make room or set HARNESS_CACHE") from None
    return result


def _measurable(side: Side) -> list[Case]:
    seen = set()
    cases = []
    for case in side.run.header.cases:
        build = side.evidence.builds.get(case.name)
        failed = find_failure(case, side.evidence, timed=True) is not None
        if case.skip is not None or build is None or build.module_sha256 is None or failed:
            continue
        where = (case.uri, case.more_uris, tuple(case.environment.items()))
        key = (build.module_sha256, case.run_flags, where, case.toolchain)
        if key not in seen:
            seen.add(key)
            cases.append(case)
    return cases


def _task(side: Side, case: Case, toolchain: Toolchain, rule: Rule, options: SelfcheckOptions) -> Task:
    try:
        module = find_module(side, case, toolchain)
    except CacheMiss as error:
        raise RunError(f"{error}; run it again") from None
    policy = MeasurementPolicy(rule=rule, budget_s=options.row_budget, seed=options.seed, call_limit_s=CALL_LIMIT_S)
    return latency_task(case.name, module, module, policy)


def _summary(name: str, outcomes: Sequence[Outcome], rule: Rule, options: SelfcheckOptions) -> CaseCheck:
    decisions = [outcome.decision for outcome in outcomes]
    generations = [generation for outcome in outcomes for generation in outcome.generations]
    noise = np.array([generation.log_ratio for generation in generations if generation.log_ratio is not None])
    seconds = sum(generation.seconds for generation in generations)
    room = int(options.row_budget * len(generations) / seconds) if seconds > 0 else 0
    latencies = [generation.base for generation in generations if generation.base is not None]
    return CaseCheck(
        case=name,
        rows=len(outcomes),
        flagged=sum(decision in CHANGED for decision in decisions),
        inconclusive=decisions.count("inconclusive"),
        failed=decisions.count("failed"),
        spread=float(noise.std(ddof=1)) if noise.size > 1 else None,
        detects=detectable_change(noise, generations=room, rule=rule),
        seconds=seconds / len(outcomes),
        latency_ns=float(np.median(latencies)) if latencies else None,
    )


def _facts(checks: Sequence[CaseCheck], side: Side, options: SelfcheckOptions) -> SelfcheckFacts:
    flagged = sum(check.flagged for check in checks)
    rows = sum(check.rows - check.failed for check in checks)
    # A case that sees nothing counts as one that sees the least, so that blind cases do not flatter the rest.
    detects = statistics.median([math.inf if check.detects is None else check.detects for check in checks])
    return SelfcheckFacts(
        flagged=flagged,
        rows=rows,
        upper_bound=rate_bounds(flagged, rows)[1],
        detects=detects if math.isfinite(detects) else None,
        seconds=options.row_budget,
        when=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        suite=side.run.header.suite,
    )
