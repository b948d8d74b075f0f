"""Outcomes -> the tables of docs/tuning.md: every number in them is counted, none is typed."""

from collections.abc import Sequence

from benchmarks.tune.defaults import defaults_table
from benchmarks.tune.outcomes import Counts, Outcome, count, geometric_mean
from benchmarks.tune.rate import Rate
from benchmarks.tune.searches import Part
from harness.progress import duration
from harness.records.bisection import Trial
from harness.records.tuning import Tuning
from harness.report.markdown import blocks, details, escape, table
from harness.report.tune_page import beside_start
from harness.report.units import interval_text
from harness.stats.intervals import Estimate
from harness.text import plural

NONE = "-"
# A result is level with another engine up to this ratio.
LEVEL = 1.1
_TITLES: dict[Part, str] = {
    "rdb": "ESRGAN's block, from `nhwc-share`, without the plugin `tuned`",
    "convolution": "The tutorial's convolution, without the plugins `tuned` and `halide-schedule`",
    "networks": "Networks",
    "mlp": "A multi-layer perceptron",
}


def render(outcomes: Sequence[Outcome], rates: Sequence[Rate], elsewhere: Sequence[Tuning] = ()) -> str:
    """The goals, then a table for each part that was measured.

    Args:
        elsewhere: Searches of another machine.
    """
    parts = []
    for part, title in _TITLES.items():
        own = [each for each in outcomes if each.search.part == part]
        if own:
            parts += [f"### {title}", _part(own)]
    if rates:
        parts += ["### Configurations a minute", _rates(rates)]
    again = [each for each in outcomes if each.again or each.lost_again]
    if again:
        parts += ["### Another process, another day, other load", _again(again)]
    stock = [each.tuning for each in outcomes if each.tuning and each.tuning.start == each.baseline]
    if len({tuning.model for tuning in stock}) > 1:
        parts += ["### What it says of the compiler's defaults", defaults_table(stock)]
    if elsewhere:
        parts += ["### Searches on another machine", _elsewhere(elsewhere)]
    return blocks(_goals(outcomes, rates), _made(outcomes), *parts, *_counts(outcomes))


def _made(outcomes: Sequence[Outcome]) -> str:
    """Where and when."""
    machines = sorted({each.machine for each in outcomes if each.machine})
    started = sorted(each.started for each in outcomes if each.started)
    if not started:
        return ""
    return (
        f"Measured from {started[0][:16].replace('T', ' ')} to {started[-1][:16].replace('T', ' ')} UTC on "
        f"{escape(' and '.join(machines))}, each result beside the others in the same rounds of fresh processes. "
        "Ratios below 1: the result is faster; in brackets their 95 % intervals."
    )


# --- the goals ---


def _goals(outcomes: Sequence[Outcome], rates: Sequence[Rate]) -> str:
    """What the issue wants, beside what was found."""
    by_name = {each.search.name: each for each in outcomes}
    networks = [each for each in outcomes if each.search.part == "networks"]
    block, convolution = by_name.get("rdb/rdb"), by_name.get("convolution/generic")
    rows = []
    if block is not None:
        rows.append(["ESRGAN's block: of stock's time", "at most 0.165", _of(block, block.baseline)])
        rows.append(["the same: of the hand-made variant's time", "", _of(block, "nhwc-share-tuned")])
    if convolution is not None:
        peer = convolution.best_peer
        found = _of(convolution, peer.name) if peer else "no other engine is installed"
        rows.append(["the tutorial's convolution, generic: of Halide's best time", "at most 1.0", found])
    if ratios := [ratio for each in networks if (ratio := each.of_stock) is not None]:
        mean, worst = f"{geometric_mean(ratios):.3f} ({len(ratios)})", f"{max(ratios):.3f}"
        rows.append(["networks: geometric mean of their ratios to stock", "at most 0.36", mean])
        rows.append(["the largest of these ratios", "at most 1.0", worst])
        hands = [_by_hand(each) for each in networks if each.of_stock is not None]
        if known := [ratio for ratio in hands if ratio is not None]:
            rows.append(["the same mean of the best hand-made variants", "", f"{geometric_mean(known):.3f}"])
        peers = [each.best_peer.ratio.ratio for each in networks if each.best_peer and each.best_peer.ratio]
        level = sum(ratio <= LEVEL for ratio in peers)
        rows.append([f"networks within {LEVEL} of the best other engine's time", "9 of 10", f"{level} of {len(peers)}"])
    if outcomes:
        counts = count(outcomes)
        written = f"{counts.wrong_written} and {counts.slower_written} of {counts.written}"
        rows.append(["variants written that are wrong, and that are not faster, when run later", "0", written])
    for rate in rates:
        found = f"{rate.raced_a_minute:.0f}; each by itself {rate.each_a_minute:.0f}"
        rows.append([f"configurations a minute ({rate.program})", "state it", found])
    return table(["what", "goal", "found"], rows, numbers=[False, True, True]) if rows else ""


def _by_hand(outcome: Outcome) -> float | None:
    """The best hand-made variant's time divided by stock's, which is one of them."""
    best, of_stock = outcome.best_by_hand, outcome.of_stock
    if best is None or best.ratio is None or of_stock is None:
        return None
    return min(1.0, of_stock / best.ratio.ratio)


def _of(outcome: Outcome, name: str) -> str:
    """The result's time divided by another's."""
    found = next((each.ratio for each in outcome.contenders if each.name == name), None)
    return _ratio(found)


def _ratio(ratio: Estimate | None) -> str:
    return interval_text(ratio.ratio, ratio.low, ratio.high) if ratio is not None else NONE


# --- one part ---


def _part(outcomes: Sequence[Outcome]) -> str:
    rows = [_line(each) for each in outcomes]
    heads = ["model", "stock, ms", "tuned, ms", "of stock", "best hand-made", "of it", "best other engine", "of it"]
    heads += ["searched", "configurations tried"]
    sides = [False, True, True, True, False, True, False, True, True, True]
    return blocks(table(heads, rows, numbers=sides), *_judged(outcomes), details("What was found", _found(outcomes)))


def _line(outcome: Outcome) -> list[str]:
    tuning = outcome.tuning
    if tuning is None:
        return [f"`{outcome.search.model}`", escape(f"not measured: {outcome.why}"), *[NONE] * 8]
    ns = {each.name: each.ns for each in outcome.contenders}
    hand, peer = outcome.best_by_hand, outcome.best_peer
    return [
        f"`{outcome.search.model}`",
        _ms(ns.get(outcome.baseline)),
        escape(outcome.failure) or _ms(ns.get(outcome.head)),
        "1 (nothing is faster)" if outcome.head == outcome.baseline else _of(outcome, outcome.baseline),
        f"`{hand.name}`" if hand else NONE,
        _ratio(hand.ratio) if hand else NONE,
        f"`{peer.name}`" if peer else "none installed",
        _ratio(peer.ratio) if peer else NONE,
        duration(tuning.spent_s),
        f"{sum(len(dispatch.tried) for dispatch in tuning.dispatches)}",
    ]


def _ms(ns: float | None) -> str:
    if ns is None:
        return NONE
    return f"{ns / 1e6:.3g}" if ns < 1e9 else f"{ns / 1e6:.0f}"


def _judged(outcomes: Sequence[Outcome]) -> list[str]:
    """By the rule of `harness compare`."""
    rows = [
        [f"`{each.search.model}`", f"`{base}`", row.verdict, interval_text(row.ratio, row.ci_low, row.ci_high)]
        for each in outcomes
        for base, row in each.judged.items()
    ]
    if not rows:
        return []
    heads = ["model", "tuned beside", "by `harness compare --within`", "ratio"]
    return [table(heads, rows, numbers=[False, False, False, True])]


def _found(outcomes: Sequence[Outcome]) -> str:
    return "\n".join(f"- {_sentence(each, each.tuning)}" for each in outcomes if each.tuning is not None)


def _sentence(outcome: Outcome, tuning: Tuning) -> str:
    if not tuning.variant:
        return f"`{outcome.search.model}`: {tuning.answer}."
    parts = ", ".join(f"`{part}`" for part in tuning.parts) or "no other flags or plugins"
    kept = sum(dispatch.kept for dispatch in tuning.dispatches)
    looked = sum(bool(dispatch.tried) for dispatch in tuning.dispatches)
    tiles = f"; dispatches tuned: {kept} of {looked} raced" if looked else ""
    return f"`{outcome.search.model}`: {parts}{tiles}."


# --- what holds, and how fast ---


def _again(outcomes: Sequence[Outcome]) -> str:
    days = sorted({day for each in outcomes for day in (*each.again, *each.lost_again)})
    rows = []
    for each in outcomes:
        cells = [
            _ratio(each.again[day]) if day in each.again else escape(each.lost_again.get(day, NONE)) for day in days
        ]
        rows.append([f"`{each.search.name}`", _of(each, each.baseline), *cells])
    heads = ["variant", "of stock, after its search", *map(_day, days)]
    return table(heads, rows, numbers=[False, *[True] * (len(heads) - 1)])


def _elsewhere(tunings: Sequence[Tuning]) -> str:
    """What searches found by their own confirmation; nothing was measured beside them afterwards."""
    rows = []
    for tuning in tunings:
        start = beside_start(tuning)
        single = next((trial for trial in reversed(tuning.confirmations) if trial.base != tuning.start_name), None)
        kept = sum(dispatch.kept for dispatch in tuning.dispatches)
        found = [", ".join(f"`{part}`" for part in tuning.parts) if tuning.variant else tuning.answer]
        found += [f"{plural(kept, 'dispatch', 'dispatches')} tuned"] if kept else []
        rows.append(
            [
                f"`{tuning.model}@{tuning.device}`",
                f"`{tuning.start}`",
                _confirmed(start),
                _confirmed(single),
                duration(tuning.spent_s),
                "; ".join(found),
            ]
        )
    heads = ["case", "from", "of its time", "of the best single change's", "searched", "what was found"]
    machines = " and ".join(sorted({tuning.machine for tuning in tunings}))
    return blocks(
        f"On {escape(machines)}. Ratios are those of the searches' own confirmations.",
        table(heads, rows, numbers=[False, False, True, True, True, False]),
    )


def _confirmed(trial: Trial | None) -> str:
    return NONE if trial is None else interval_text(trial.ratio, trial.ci_low, trial.ci_high)


def _day(name: str) -> str:
    """`2026-11-23, alone, machine 3f2a91c04b7e` of the name of a folder."""
    day, load, machine = name.rsplit("-", 2)
    return f"{day}, {load}, machine {machine}"


def _rates(rates: Sequence[Rate]) -> str:
    rows = [
        [
            rate.program,
            _ms(rate.call_ns),
            f"{rate.raced}",
            f"{rate.raced_a_minute:.0f}",
            f"{rate.each} ({rate.failed} failed)" if rate.failed else f"{rate.each}",
            f"{rate.each_a_minute:.0f}",
            f"{rate.raced_a_minute / rate.each_a_minute:.1f}",
        ]
        for rate in rates
    ]
    heads = ["program", "ms", "raced", "a minute", "each by itself", "a minute", "times as many"]
    return blocks(
        table(heads, rows, numbers=[False, *[True] * 6]),
        "`Raced`: compiled and raced by `harness tune`, taking the dispatch out of its program included. `Each by "
        "itself`: iree-compile of the program with the same tuning spec, and iree-benchmark-module once, in processes "
        "of their own, one after the other.",
    )


def _counts(outcomes: Sequence[Outcome]) -> list[str]:
    parts = [part for part in _TITLES if any(each.search.part == part and each.tuning for each in outcomes)]
    if not parts:
        return []
    groups: list[tuple[str, Counts]] = [
        (part, count([each for each in outcomes if each.search.part == part])) for part in parts
    ]
    groups.append(("all", count([each for each in outcomes if each.search.part in parts])))
    rows = [
        [
            name,
            f"{each.searches}",
            f"{each.changes}",
            f"{each.inert}",
            f"{each.failed}",
            f"{each.wrong}",
            f"{each.untried}",
            f"{each.configurations}",
            f"{each.winners}",
            f"{each.refuted}",
            f"{each.written}",
            f"{each.wrong_written}",
            f"{each.slower_written}",
        ]
        for name, each in groups
    ]
    heads = ["part", "searches", "changes and combinations", "inert", "failed", "wrong outputs", "untried"]
    heads += ["configurations", "winners", "of them refuted by the whole", "variants written", "wrong later"]
    heads += ["not faster later"]
    return ["### What became of candidates", table(heads, rows, numbers=[False, *[True] * 12])]
