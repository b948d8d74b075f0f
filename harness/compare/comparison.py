"""The line of a comparison, but for measuring and keeping it: two sides -> a plan -> rows -> a comparison.

plan = plan_comparison(base, head, options)     # pairs, and what is known of each; all that may be wrong
rows = recorded(plan), or those of harness.compare.remeasure
comparison = conclude(plan, rows, ...)          # known and counted rows too, gates, order, commands

A run's report is `plan_run(side)`, what was recorded, and `conclude`: its variants against their baseline.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.compare.judge import Judged, Timings, judge_recorded, rules_of
from harness.compare.options import CompareOptions
from harness.compare.pairs import (
    DecidedRow,
    OutputsOfPair,
    Pair,
    Side,
    compare_pair,
    pair_runs,
    pair_variants,
    redefinition,
    what_is_known,
    with_rounds,
)
from harness.compare.rows import (
    apply_gates,
    exact_rows,
    geometric_means,
    is_of,
    known_row,
    require_gated_cases,
    summarise,
    unknown_row,
    with_repro,
)
from harness.compare.sides import machine_facts, require_comparable, side_facts
from harness.errors import UsageError
from harness.machine.environment import Environment
from harness.metrics import COMPILE_TIME, INSTRUCTIONS, LATENCY
from harness.records.case import Gate
from harness.records.comparison import Comparison, Row, Verdict
from harness.records.run import HostRecord
from harness.stats.rule import Rule
from harness.store.evidence import why_refused
from harness.text import matching, plural

# Verdicts of pairs that are known whose figures are compared: what is smaller in a module that fails is no improvement.
_WITH_FIGURES: frozenset[Verdict] = frozenset({"missing", "new"})
# Cases that a note has room for.
_MOST_NAMES = 5
# A run compiles beside other compiles: its times of equal modules were up to 1.4 times each other.
_PLAIN_COMPILE = 2.0
_TRANSIENT = "transient-memory"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be compared."""

    base: Side
    head: Side
    options: CompareOptions
    every: tuple[Pair, ...]  # All pairs of the two sides; within a run, each variant with its baseline
    pairs: tuple[Pair, ...]  # Those of them that the user's patterns choose
    outputs: Mapping[str, OutputsOfPair]  # By name, what is known of the outputs of pairs whose modules differ
    # By name of every pair: its verdict; None: its latency must be compared; a string: why it is left out
    fates: Mapping[str, DecidedRow | str | None]
    rules: Mapping[str, Rule]  # By metric
    gates: tuple[Gate, ...]  # Of the head's suite; none within a run, since they are about a change of the compiler
    partial: bool  # Whether only some of the suite's cases were run or compared

    @property
    def within(self) -> bool:
        """Whether both sides are variants of one run."""
        return self.options.within is not None

    @property
    def open(self) -> list[Pair]:
        """Pairs whose latency must be compared."""
        return [pair for pair in self.pairs if self.fates[pair.name] is None]

    @property
    def compiled(self) -> list[Pair]:
        """Pairs whose compile times are compared: those that are asked for, and those that differ plainly."""
        return [pair for pair in self.open if self.options.compile_budget_s and self._is_recompiled(pair)]

    def _is_recompiled(self, pair: Pair) -> bool:
        """Equal modules were compiled to equal code, and their time is nobody's news."""
        builds = [side.evidence.builds[case.name] for side, case in zip((self.base, self.head), pair.both, strict=True)]
        less, more = sorted(build.compile_ns or 0 for build in builds)
        is_asked = self.options.metric == COMPILE_TIME.name or self.is_gated(pair, COMPILE_TIME.name)
        takes_s = self.rules[COMPILE_TIME.name].first_look * (less + more) / 1e9
        is_plain = 0 < _PLAIN_COMPILE * less <= more and takes_s <= self.options.compile_budget_s
        return builds[0].module_sha256 != builds[1].module_sha256 and (is_asked or is_plain)

    def is_gated(self, pair: Pair, metric: str) -> bool:
        """Whether a gate of the suite is about a figure of a pair."""
        return any(gate.metric == metric and is_of(gate, pair) for gate in self.gates)

    @property
    def left_out(self) -> list[Pair]:
        """Pairs that no row is about."""
        return [pair for pair in self.pairs if isinstance(self.fates[pair.name], str)]

    @property
    def controls(self) -> list[Pair]:
        """Identical pairs that are measured all the same."""
        fates = ((pair, self.fates[pair.name]) for pair in self.pairs)
        identical = [pair for pair, fate in fates if isinstance(fate, DecidedRow) and fate.verdict == "identical"]
        return identical[: self.options.controls]


def plan_comparison(base: Side, head: Side, options: CompareOptions) -> Plan:
    """Pair the cases of two sides, and say what is known without measuring; within a run, both sides are that run."""
    by_name = options.by_name or (base.commit is not None and head.commit is not None)
    every = pair_runs(base, head, by_name=by_name) if options.within is None else pair_variants(head)
    if not every and options.within is not None:
        raise UsageError(f"{head.label}: has no variant beside the baseline; compare it with another run")
    pairs = _chosen(every, options.patterns, [host.name for host in head.run.hosts])
    plan = _plan(base, head, options, every, pairs)
    require_gated_cases(pairs, plan.gates, head.run.header.suite, partial=plan.partial)
    if not options.remeasure:
        require_comparable(base, head, plan.open, across_hosts=options.across_hosts)
    return plan


def plan_run(side: Side) -> Plan:
    """A run's variants against their baselines, as it recorded them; it may have none."""
    pairs = pair_variants(side)
    return _plan(side, side, CompareOptions(within=Path(side.run.header.id), remeasure=False), pairs, pairs)


def _plan(base: Side, head: Side, options: CompareOptions, every: Sequence[Pair], pairs: Sequence[Pair]) -> Plan:
    header = head.run.header
    fates = {pair.name: what_is_known(pair, base, head) for pair in every}
    outputs: dict[str, OutputsOfPair] = {}
    if options.within is None:  # a run has checked its variants against its own baseline
        outputs = {pair.name: compare_pair(pair, base, head) for pair in every if fates[pair.name] is None}
    return Plan(
        base=base,
        head=head,
        options=options,
        every=tuple(every),
        pairs=tuple(pairs),
        outputs=outputs,
        fates=fates | {name: known.verdict for name, known in outputs.items()},
        rules=rules_of(header, head.label, options.floor),
        gates=header.gates if options.within is None else (),
        partial=bool(options.patterns or any(header.settings.get(part) for part in ("patterns", "tags", "shard"))),
    )


def _chosen(pairs: list[Pair], patterns: Sequence[str], hosts: Sequence[str]) -> list[Pair]:
    """What a user's patterns match; `*@cpu` matches on the `cpu.ash` of the host ash too, as it does in the suite."""
    if not patterns:
        return pairs
    match = matching(patterns).match
    chosen = [
        pair for pair in pairs if match(pair.name) or any(match(pair.name.removesuffix(f".{host}")) for host in hosts)
    ]
    if not chosen:
        asked = " ".join(f"--filter {pattern}" for pattern in patterns)
        raise UsageError(f"{asked} matches no case of the comparison, such as {pairs[0].name}; correct the pattern")
    return chosen


def recorded(plan: Plan) -> list[Row]:
    """Latency rows of the open pairs, from what the runs recorded."""
    if not plan.open:
        return []
    head = Timings(with_rounds(plan.head))
    base = head if plan.within else Timings(with_rounds(plan.base))
    judged = judge_plan(plan, base, head)
    return [judged[pair.name].row for pair in plan.open]


def judge_plan(plan: Plan, base: Timings, head: Timings) -> dict[str, Judged]:
    """Judge all that was recorded, by name: also what patterns leave out, which makes no row that is left surer."""
    pairs = {pair.name: pair for pair in plan.every if plan.fates[pair.name] is None}
    return judge_recorded(pairs, base, head, plan.rules[LATENCY.name])


def conclude(
    plan: Plan,
    compared: Sequence[Row],
    environment: Environment,
    *,
    created: str,
    name: str = "",
    command: tuple[str, ...] = (),
    hosts: Sequence[HostRecord] = (),
    remarks: Sequence[str] = (),  # On the toolchains, see harness.compare.sides
) -> Comparison:
    """The whole comparison: with what is known and counted, gates, notes and the commands that repeat each row."""
    base, head, options = plan.base, plan.head, plan.options
    pairs = {pair.name: pair for pair in plan.pairs}
    rows = [known_row(pair, fate) for pair in plan.pairs if isinstance(fate := plan.fates[pair.name], DecidedRow)]
    rows += compared
    floors = {metric: rule.floor for metric, rule in plan.rules.items()}
    # Equal modules have equal figures, and what differs all the same (peaks of memory, ops of early phases) is noise.
    fates = ((pair, plan.fates[pair.name]) for pair in plan.pairs if pair.base and pair.head)
    counted = [
        pair for pair, fate in fates if fate is None or (isinstance(fate, DecidedRow) and fate.verdict in _WITH_FIGURES)
    ]
    rows += [row for pair in counted for row in exact_rows(pair, base, head, floors)]
    rows += [row for pair in counted if plan.is_gated(pair, _TRANSIENT) and (row := unknown_row(pair, base, head))]
    named = {host for row in rows for host in row.hosts}
    hosts = [host for host in hosts if host.name in named] or hosts
    if options.fleet is not None and not hosts:  # nothing had to be measured, or could be: not here either
        environment = {}
    rows, unused = apply_gates(_in_order(rows, plan.pairs), plan.gates, plan.left_out)
    facts = side_facts(base, base.label), side_facts(head, head.label)
    if plan.within:
        baselines = [pair.base.variant for pair in plan.pairs if pair.base is not None]
        variants = [pair.head.variant for pair in plan.pairs if pair.head is not None]
        facts = side_facts(base, "baseline", baselines), side_facts(head, "variants", variants)
    programs = {name: known.remark for name, known in plan.outputs.items() if known.remark}
    rows = [
        replace(row, reason="; ".join(filter(None, (row.reason, programs[row.case]))))
        if row.case in programs and row.metric == LATENCY.name and not row.control
        else row
        for row in rows
    ]
    rows = [with_repro(row, pairs[row.case], base, head, options) for row in rows]
    return Comparison(
        id=name,
        created=created,
        base=facts[0],
        head=facts[1],
        within=plan.within,
        mode="remeasured" if options.remeasure else "recorded",
        machine=machine_facts(environment, rows, hosts),
        rows=tuple(rows),
        summary=summarise(rows),
        means=geometric_means(rows),
        notes=(*remarks, *_notes(plan), *unused),
        settings=_settings(plan),
        command=command,
        hosts=tuple(hosts),
    )


def _in_order(rows: list[Row], pairs: Sequence[Pair]) -> list[Row]:
    names = dict.fromkeys([LATENCY.name, INSTRUCTIONS.name, COMPILE_TIME.name, *(row.metric for row in rows)])
    metrics = {name: rank for rank, name in enumerate(names)}
    places = {pair.name: place for place, pair in enumerate(pairs)}
    return sorted(rows, key=lambda row: (row.control, metrics[row.metric], places[row.case]))


def _notes(plan: Plan) -> list[str]:
    notes = []
    for name, run in (("base", plan.base.run), ("head", plan.head.run))[: 1 if plan.within else 2]:
        if not run.finished:
            notes.append(f"The {name}'s run {run.header.id} is not finished; what it lacks counts as missing")
    replaced = [pair.both for pair in plan.every if plan.within and pair.base and pair.head and pair.head.baseline]
    notes += [
        f"{base.group} is compared with {base.name}, since {planned.name} {why_refused(planned, plan.head.evidence)}"
        for base, planned in replaced
    ]
    unknown = Counter(known.unknown for known in plan.outputs.values() if known.unknown and known.same_program)
    notes += [f"Outputs of {plural(number, 'case')} were not compared: {reason}" for reason, number in unknown.items()]
    counts = Counter(str(plan.fates[pair.name]) for pair in plan.left_out)
    notes += [f"{plural(number, 'case')} left out on both sides: {reason}" for reason, number in counts.items()]
    redefined: dict[str, list[str]] = {}
    for pair in plan.pairs if not plan.within else ():
        if pair.base and pair.head and pair.base.id != pair.head.id:
            redefined.setdefault(redefinition((pair.base, plan.base), (pair.head, plan.head)), []).append(pair.name)
    return notes + [
        f"The two sides define {plural(len(names), 'case')} differently: {how} ({_shown(names)})"
        for how, names in redefined.items()
    ]


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_NAMES]) + (", ..." if len(names) > _MOST_NAMES else "")


def _settings(plan: Plan) -> dict[str, Any]:
    rule, options = plan.rules[LATENCY.name], plan.options
    return {
        "floors": {name: rule.floor for name, rule in plan.rules.items()},
        "alpha": rule.alpha,
        "confirm_alpha": rule.confirm_alpha,
        "confidence": rule.confidence,
        "first_look": rule.first_look,
        "row_budget_s": options.row_budget,
        "row_cap_s": options.row_cap,
        "compile_budget_s": options.compile_budget_s,
        "controls": options.controls,
        "across_hosts": options.across_hosts,
        "patterns": list(options.patterns),
        "seed": options.seed,
    }
