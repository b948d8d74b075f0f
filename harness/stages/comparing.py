"""The line of a comparison: two runs -> pairs -> what is known -> what is measured -> rows -> a directory.

Read `compare_sides` from top to bottom.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cache import cache_root
from harness.compare.blank import blank_row
from harness.compare.exact import exact_rows
from harness.compare.gates import apply_gates, decides, is_of
from harness.compare.hosts import machine_facts, require_comparable, side_facts
from harness.compare.judge import rules_of
from harness.compare.judged import judge_by_upstream
from harness.compare.pairs import Known, Pair, Side, pair_runs, pair_within, what_is_known, with_rounds
from harness.compare.recorded import Timings, judge_recorded, recorded_row
from harness.compare.repro import with_repro
from harness.compare.rows import geometric_means, known_row, summarise
from harness.errors import UsageError
from harness.machine.environment import capture_environment
from harness.metrics import COMPILE_TIME, INSTRUCTIONS, LATENCY, TIMED, metric_named
from harness.process import Limits
from harness.progress import Progress
from harness.records.case import Gate
from harness.records.comparison import Comparison, Mode, Row, RuleName
from harness.report.comparison import render_comparison
from harness.report.comparison.json_ import json_document
from harness.stats.rule import Rule
from harness.store.comparison_directory import ComparisonDirectory
from harness.suite.cases import matching

if TYPE_CHECKING:
    from harness.compare.remeasure import MeasureOptions
    from harness.toolchain import Toolchain


# Cases that a note has room for.
_MOST_NAMES = 5


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """What a user can choose about a comparison.

    Attributes:
        remeasure: Measure both sides again, side by side; else compare what the runs recorded.
        across_hosts: Compare recorded numbers of different machines or devices too.
        row_budget_s: Wall seconds of looking at one row's latency.
        compile_budget_s: The same for its compile time; 0: compile times are not measured.
        floor: Of latency, in place of the suite's; a share.
        controls: Identical rows that are measured as A/A controls.
        patterns: Shell patterns on case names, one of which has to match; (): all.
        by_name: Cases of one name are compared, also where the two sides define them differently.
    """

    results: Path
    remeasure: bool
    across_hosts: bool
    row_budget_s: float
    compile_budget_s: float
    floor: float | None
    controls: int
    rule: RuleName
    patterns: tuple[str, ...]
    seed: int
    compile_limits: Limits
    call_limit_s: float
    command: tuple[str, ...]
    by_name: bool = False


def compare_sides(
    base: Side,
    head: Side,
    toolchains: Mapping[str, Toolchain],
    options: CompareOptions,
    progress: Progress,
    *,
    within: bool,
) -> tuple[Comparison, Path]:
    """Compare two sides, and keep the comparison; within a run, both sides are that run.

    Args:
        toolchains: On this machine, by release; at least those of all cases where they are measured again.

    Raises:
        HarnessError: The sides cannot be compared, or the results folder cannot be written.
    """
    every = pair_within(head) if within else pair_runs(base, head, by_name=options.by_name)
    pairs = _chosen(every, options.patterns)
    fates = {pair.name: what_is_known(pair, base, head) for pair in every}
    left_out = [pair for pair in pairs if isinstance(fates[pair.name], str)]
    known = {pair.name: fate for pair in pairs if isinstance(fate := fates[pair.name], Known)}
    unknown = [pair for pair in pairs if fates[pair.name] is None]
    rules = rules_of(head.run.header, head.label, options.floor)
    here = capture_environment()
    now = datetime.now(timezone.utc)
    suite, partial = head.run.header.suite, bool(options.patterns or _was_partial(head))
    # Gates are about a change of the compiler; a variant that takes more memory is a finding.
    gates = () if within else head.run.header.gates
    _require_gated_cases(pairs, gates, suite, partial=partial)
    if not options.remeasure:
        require_comparable(base, head, unknown, across_hosts=options.across_hosts)
    with ComparisonDirectory(options.results, head.run.header.suite_name, now) as directory:
        if options.remeasure:
            from harness.compare.remeasure import remeasure

            identical = [pair for pair in pairs if pair.name in known and known[pair.name].verdict == "identical"]
            controls = identical[: options.controls]
            wanted = _measure_options(toolchains, rules, options)
            measured = remeasure(unknown, controls, base, head, wanted, directory, progress)
        else:
            measured = _recorded(unknown, every, fates, base, head, rules[LATENCY.name], within=within)
        rows = [known_row(pair, known[pair.name]) for pair in pairs if pair.name in known]
        rows += measured
        rows += [row for pair in pairs if _may_differ(fates[pair.name]) for row in _exact(pair, base, head)]
        by_name = {pair.name: pair for pair in pairs}
        applied, unused = _gates(gates, rows, left_out, options)
        rows = list(apply_gates(_in_order(rows, pairs), applied, suite=suite, partial=partial))
        if options.rule == "upstream":
            architecture = str(here.get("machine", {}).get("architecture", ""))
            rows = list(judge_by_upstream(rows, by_name, architecture))
        again = _options_again(options)
        rows = [
            with_repro(row, by_name[row.case], base, head, again, within=within) if row.metric in TIMED else row
            for row in rows
        ]
        mode: Mode = "remeasured" if options.remeasure else "recorded"
        comparison = Comparison(
            id=directory.path.name,
            created=now.isoformat(timespec="seconds"),
            base=side_facts(base, "baseline" if within else base.label),
            head=side_facts(head, "variants" if within else head.label),
            within=within,
            mode=mode,
            rule=options.rule,
            machine=machine_facts(here, rows),
            rows=tuple(rows),
            summary=summarise(rows),
            means=geometric_means(rows),
            notes=(
                *_notes(base, head, [str(fates[pair.name]) for pair in left_out], within=within),
                *(() if within else _redefined(pairs)),
                *unused,
            ),
            settings=_settings(rules, options),
            command=options.command,
        )
        directory.finish(
            json_document(comparison),
            render_comparison(comparison, "markdown", full=True),
            comparison,
        )
    return comparison, directory.path


def _measure_options(
    toolchains: Mapping[str, Toolchain], rules: Mapping[str, Rule], options: CompareOptions
) -> MeasureOptions:
    from harness.compare.remeasure import MeasureOptions

    return MeasureOptions(
        toolchains=toolchains,
        rules=rules,
        row_budget_s=options.row_budget_s,
        compile_budget_s=options.compile_budget_s,
        seed=options.seed,
        compile_limits=options.compile_limits,
        call_limit_s=options.call_limit_s,
        cache=cache_root(),
    )


def _was_partial(side: Side) -> bool:
    """Whether only some of the suite's cases were run."""
    return any(side.run.header.settings.get(name) for name in ("patterns", "tags"))


def _options_again(options: CompareOptions) -> list[str]:
    """What a command that repeats a row needs to judge it alike."""
    recorded = ["--no-remeasure", *(["--across-hosts"] if options.across_hosts else [])]
    return [
        *([] if options.remeasure else recorded),
        *(["--by-name"] if options.by_name else []),
        *([] if options.floor is None else ["--floor", f"{options.floor:g}"]),
        *(["--rule", options.rule] if options.rule != "generations" else []),
    ]


def _chosen(pairs: list[Pair], patterns: Sequence[str]) -> list[Pair]:
    if not patterns:
        return pairs
    match = matching(patterns).match
    chosen = [pair for pair in pairs if match(pair.name)]
    if not chosen:
        asked = " ".join(f"--filter {one}" for one in patterns)
        raise UsageError(f"{asked} matches no case of the comparison, such as {pairs[0].name}; correct the pattern")
    return chosen


def _recorded(
    chosen: Sequence[Pair],
    every: Sequence[Pair],
    fates: Mapping[str, Known | str | None],
    base: Side,
    head: Side,
    rule: Rule,
    *,
    within: bool,
) -> list[Row]:
    """Rows of the chosen pairs, judged together with all others that were recorded.

    Leaving rows out after they were measured makes none of the rest more certain. So the report of a run, a comparison
    within it and one that repeats a single row of it say the same of a row.
    """
    if not chosen:
        return []
    timings = [Timings(with_rounds(side)) for side in ((head,) if within else (base, head))]
    pairs = {pair.name: pair for pair in every if fates[pair.name] is None}
    judgements = judge_recorded(pairs, timings[0], timings[-1], rule, within=within)
    return [recorded_row(pair, judgements.get(pair.name), timings[0], timings[-1], rule) for pair in chosen]


def _gates(
    gates: Sequence[Gate], rows: Sequence[Row], left_out: Sequence[Pair], options: CompareOptions
) -> tuple[tuple[Gate, ...], list[str]]:
    """The gates that can be held against these rows, and notes of those that cannot."""
    if options.rule == "upstream" and gates:
        return (), ["The suite's gates were not applied: upstream's rule has none"]
    applied, notes = [], []
    for gate in gates:
        if any(decides(gate, row) for row in rows):
            applied.append(gate)
        elif any(is_of(gate, row) for row in rows):
            notes.append(f"Gate {gate.name} was not applied: {gate.metric} was not measured")
        elif any(is_of(gate, blank_row(pair, LATENCY, "identical")) for pair in left_out):
            notes.append(f"Gate {gate.name} was not applied: its cases were left out")
        else:
            applied.append(gate)
    return tuple(applied), notes


def _require_gated_cases(pairs: Sequence[Pair], gates: Sequence[Gate], suite: str, *, partial: bool) -> None:
    """Refuse a gate that no case is of, before minutes are spent on measuring, and one that a run was damaged to have.

    Raises:
        UsageError: The gate and what is wrong with it.
    """
    for gate in gates:
        limits = [limit for limit in (gate.relative, gate.absolute) if limit is not None]
        if metric_named(gate.metric) is None or not all(0 <= limit < math.inf for limit in limits):
            raise UsageError(f"{suite}: [gates.{gate.name}] names no metric, or a limit that is none; mend it")
    apply_gates([blank_row(pair, LATENCY, "identical") for pair in pairs], gates, suite=suite, partial=partial)


def _may_differ(fate: Known | str | None) -> bool:
    """Whether a pair's counted figures are compared: not where it is left out, nor where its row is `identical`.

    Equal modules under the same runtime have equal sizes, counts and memory, so their one row stands for all of them.
    Peaks of memory that differ all the same are noise of iree-benchmark-module, and ops that are only in an earlier
    phase of the one compiler's program are not in what is run.
    """
    return fate is None or (isinstance(fate, Known) and fate.verdict != "identical")


def _exact(pair: Pair, base: Side, head: Side) -> tuple[Row, ...]:
    if pair.base is None or pair.head is None:
        return ()
    named = ((base, pair.base.name), (head, pair.head.name))
    return exact_rows(
        pair.head,
        base.evidence.builds.get(pair.base.name),
        head.evidence.builds.get(pair.head.name),
        base.evidence.references.get(pair.base.name),
        head.evidence.references.get(pair.head.name),
        *(one.counts if (one := side.evidence.ir.get(name)) else {} for side, name in named),
        name=pair.name,
    )


def _in_order(rows: list[Row], pairs: Sequence[Pair]) -> list[Row]:
    """By metric, then by case; controls last."""
    names = dict.fromkeys([LATENCY.name, INSTRUCTIONS.name, COMPILE_TIME.name, *(row.metric for row in rows)])
    metrics = {name: rank for rank, name in enumerate(names)}
    places = {pair.name: place for place, pair in enumerate(pairs)}
    return sorted(rows, key=lambda row: (row.control, metrics[row.metric], places[row.case]))


def _notes(base: Side, head: Side, left_out: Sequence[str], *, within: bool) -> list[str]:
    """What bears on the whole comparison and is not told elsewhere; `left_out` has one reason for each case."""
    notes = []
    for name, run in (("base", base.run), ("head", head.run)):
        if not run.finished:
            notes.append(f"The {name}'s run {run.header.id} is not finished; what it lacks counts as missing")
        if run.turns_dropped:
            notes.append(
                f"The raw turns of the {name}'s run {run.header.id} were dropped on {run.turns_dropped[:10]}; its "
                "latencies are compared only where both sides are measured again"
            )
        if within:
            break
    for reason in dict.fromkeys(left_out):
        number = left_out.count(reason)
        notes.append(f"{number} case{'' if number == 1 else 's'} left out on both sides: {reason}")
    return notes


def _redefined(pairs: Sequence[Pair]) -> list[str]:
    """That cases met by name alone."""
    changed = [pair.name for pair in pairs if pair.base and pair.head and pair.base.id != pair.head.id]
    if not changed:
        return []
    shown = ", ".join(changed[:_MOST_NAMES]) + (", ..." if len(changed) > _MOST_NAMES else "")
    cases = "1 case" if len(changed) == 1 else f"{len(changed)} cases"
    return [f"The two sides define {cases} differently, by flags, model, device or plugins: {shown}"]


def _settings(rules: Mapping[str, Rule], options: CompareOptions) -> dict[str, Any]:
    rule = rules[LATENCY.name]
    return {
        "floors": {name: one.floor for name, one in rules.items()},
        "alpha": rule.alpha,
        "confirm_alpha": rule.confirm_alpha,
        "confidence": rule.confidence,
        "first_look": rule.first_look,
        "row_budget_s": options.row_budget_s,
        "compile_budget_s": options.compile_budget_s,
        "controls": options.controls,
        "across_hosts": options.across_hosts,
        "patterns": list(options.patterns),
        "seed": options.seed,
    }
