"""An explanation -> one sentence: how much, where, and what the compiler did differently there; pure."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from harness.records.comparison import Row, SideFacts, Verdict
from harness.records.explanation import Elsewhere, Explanation, Part
from harness.text import plural

# What sentences call the sides, base's first: `3.10.0`, `3.12.0`.
Labels: TypeAlias = tuple[str, str]

_TIMES = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))
_BYTES = (("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10))
_DIGITS = 3
_COUNTED_WHOLE = 10_240


def on(labels: Labels, base: str, head: str) -> str:
    """`13 on 3.10.0, 1 on 3.12.0`."""
    return f"{base} on {labels[0]}, {head} on {labels[1]}"


def enumerated(words: Sequence[str]) -> str:
    """`a, b and c`; "" for none."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def time_text(time_ns: float) -> str:
    """A time of either sign without it: `733 ms`, `20.1 µs`."""
    value = abs(time_ns)
    name, size = next(((name, size) for name, size in _TIMES if value >= size), _TIMES[-1])
    return f"{three_digits(value / size)} {name}"


def bytes_text(number: int) -> str:
    """`9,216 bytes` below 10 KiB, else `18.9 MiB`."""
    if number < _COUNTED_WHOLE:
        return f"{number:,} bytes"
    name, size = next(((name, size) for name, size in _BYTES if number >= size), _BYTES[-1])
    return f"{three_digits(number / size)} {name}"


def three_digits(value: float) -> str:
    """A number from 1 on with three digits, and all before the point."""
    before_point = math.floor(math.log10(value)) + 1 if value >= 1 else 1
    return f"{value:,.{max(_DIGITS - before_point, 0)}f}"


_CHANGED = ("regressed", "improved")
_CERTAIN = (*_CHANGED, "new", "missing")
# What is less than this share of a change is left out of the sentence.
_SMALL = 0.1
_MOST_GROUPS = 3
_MOST_NAMES = 2
# Ratios outside of this are said as a factor, those inside in per cent.
_PERCENT = (0.5, 2.0)

# What dispatches are called whose names begin with these words.
_KINDS = {
    "conv": "convolutions",
    "depthwise": "depthwise convolutions",
    "matmul": "matmuls",
    "batch": "batched matmuls",
    "reduction": "reductions",
    "elementwise": "elementwise dispatches",
    "transpose": "transposes",
    "pooling": "poolings",
    "softmax": "softmaxes",
    "slow": "copies",
}


def labels_of(base: SideFacts, head: SideFacts) -> Labels:
    """What sentences call the two sides: releases, commits, runs, or variants of one run."""
    return enumerated(base.variants) or base.label, enumerated(head.variants) or head.label


def explanation_sentence(explanation: Explanation) -> str:
    """How much the latency changes, in which dispatches, and what differs there; what is left where nothing does."""
    subject = f"The compile of {explanation.case}" if explanation.method == "passes" else explanation.case
    how_much = _how_much(explanation.latency, labels_of(explanation.base, explanation.head))
    cause = cause_of(explanation)
    return f"{subject} {how_much}: {cause}." if cause else f"{subject} {how_much}."


def step_sentence(explanation: Explanation, row: Row, labels: Labels) -> str:
    """The explanation's sentence; where it came to no verdict, how much the row of a run changes and why."""
    is_open, cause = explanation.latency.verdict == "inconclusive", cause_of(explanation, row.verdict)
    return change_sentence(row, labels, cause) if is_open else explanation.sentence


def cause_of(explanation: Explanation, decided: Verdict | None = None) -> str:
    """Where the time goes and what differs there, as clauses; "" where it came to no verdict and no run `decided`."""
    latency = explanation.latency
    if decided is not None and latency.verdict == "inconclusive":
        explanation = replace(explanation, latency=replace(latency, verdict=decided))
    if explanation.method == "passes":
        return _passes(explanation)
    if not explanation.schedule and not any(part.differs_at for part in explanation.parts):
        return _what_is_left(explanation)
    return "; ".join(_where(explanation))


def change_sentence(latency: Row, labels: Labels, cause: str = "") -> str:
    """How much a row's latency changes, with the interval of its ratio, and why."""
    how_much = _how_much(latency, labels, interval=True)
    return f"{latency.case} {how_much}: {cause}." if cause else f"{latency.case} {how_much}."


# --- how much ---


def _how_much(latency: Row, labels: Labels, *, interval: bool = False) -> str:
    if latency.base_value is None or latency.head_value is None:
        return "has no latency on both sides"
    base, head = time_text(latency.base_value), time_text(latency.head_value)
    ends = (latency.ci_low, latency.ci_high) if interval else (None, None)
    if latency.verdict in _CHANGED:
        return f"goes from {base} on {labels[0]} to {head} on {labels[1]}{_ratio(latency.ratio, *ends)}"
    times = on(labels, base, head)
    if latency.lacked_time and latency.reason:
        return f"is not decided ({times}; {latency.reason})"
    if latency.verdict == "inconclusive":
        return f"may have changed or not ({times})"
    return f"takes as long on both sides ({times})"


def _ratio(ratio: float | None, low: float | None = None, high: float | None = None) -> str:
    """` (+4.2 %)` or ` (28.1 times)`, with the interval where its ends are given: ` (28.1 times [27.9, 28.4])`."""
    if ratio is None:
        return ""
    is_share = _PERCENT[0] < ratio < _PERCENT[1]
    ends = [f"{(end - 1) * 100:+.3g}" if is_share else f"{end:.3g}" for end in (ratio, low, high) if end is not None]
    interval = f" [{ends[1]}, {ends[2]}]" if len(ends) > 2 else ""
    return f" ({ends[0]} {'%' if is_share else 'times'}{interval})"


def _change_ns(explanation: Explanation) -> float:
    """Of the latency; 0 where it is not known to have changed."""
    latency = explanation.latency
    if latency.verdict not in _CHANGED or latency.base_value is None or latency.head_value is None:
        return 0.0
    return latency.head_value - latency.base_value


# --- where, and what ---


# Parts that changed in the same direction, by the same doing of the compiler.
_Group: TypeAlias = tuple[Part, ...]


def _change(group: _Group) -> float:
    return sum(part.change_ns for part in group)


def _where(explanation: Explanation) -> list[str]:
    """A clause for each group of dispatches that matters, and for what is outside of dispatches."""
    total = _change_ns(explanation)
    groups = _groups(explanation.parts)
    if not explanation.adds_up:
        return [_by_itself(group, explanation) for group in groups[:_MOST_GROUPS]] or _uncertain(explanation, total)
    small = _SMALL * max([abs(total), *(abs(_change(group)) for group in groups)])
    large = [group for group in groups if abs(_change(group)) >= small]
    with_it = [group for group in large if total and (_change(group) > 0) == (total > 0)]
    against = [group for group in large if group not in with_it]
    clauses: list[str] = []
    for group in with_it[:_MOST_GROUPS]:
        change = _change(group)
        is_all = time_text(change) == time_text(total) or abs(change) > abs(total)
        share = f"{time_text(change)} are"
        if not clauses:
            share = "all of that is" if is_all else f"{time_text(change)} of these {time_text(total)} are"
        clauses.append(f"{share} in {_who(group)}{_why(group)}")
    clauses += _outside(explanation, total, small)
    for group in against[: _MOST_GROUPS - len(clauses)]:
        takes = "takes" if len(group) == 1 else "take"
        clauses.append(f"{_who(group)} {takes} {_more(_change(group))}{_why(group)}")
    return clauses or _uncertain(explanation, total)


def _outside(explanation: Explanation, total: float, small: float) -> list[str]:
    """What is outside of dispatches, or in those that could not be timed."""
    beside = [
        sum(each.device_ns.values()) + each.host_ns for each in (explanation.base_elsewhere, explanation.head_elsewhere)
    ]
    change = beside[1] - beside[0]
    if min(beside) < 0 or abs(change) < small:  # not known where dispatches add up to more than a call
        return []
    if untimed := [part for part in explanation.parts if not part.is_timed]:
        why = _why(sorted(untimed, key=lambda part: not part.what))
        return [f"{_more(change)} is outside of dispatches or in {_who(untimed)} that could not be timed{why}"]
    if not total or (explanation.method == "alone" and change * total < 0):  # alone, a dispatch may take longer
        return []
    schedule = f", with {enumerated(explanation.schedule[:_MOST_NAMES])}" if explanation.schedule else ""
    if explanation.method == "alone":
        return [f"beside what dispatches take alone it takes {_more(change)}{schedule}"]
    words = _outside_words(explanation.base_elsewhere, explanation.head_elsewhere)
    return [f"outside of dispatches it takes {_more(change)} ({words}){schedule}"]


def _more(change_ns: float) -> str:
    return f"{time_text(change_ns)} {'more' if change_ns > 0 else 'less'}"


def _groups(parts: Sequence[Part]) -> list[_Group]:
    """Parts that certainly changed, those alike together, the largest change first."""
    alike: dict[tuple[bool, tuple[str, ...]], list[Part]] = {}
    for part in parts:
        if part.verdict in _CERTAIN and part.change_ns:
            alike.setdefault((part.change_ns > 0, part.what[:1]), []).append(part)
    groups = [tuple(group) for group in alike.values()]
    return sorted(groups, key=lambda group: -abs(_change(group)))


def _who(parts: Sequence[Part]) -> str:
    """`conv_32x90x62x64x3x3_f32`, or `5 convolutions`."""
    if len(parts) == 1:
        part = parts[0]
        first, *others = part.operation.split(" + ")
        if len(others) >= _MOST_NAMES:
            return f"{first} and {plural(len(others), 'neighbour')} of it"
        return part.operation or enumerated(part.head or part.base)
    kinds = set(map(_kind, parts))
    kind = kinds.pop() if len(kinds) == 1 else ""
    whole = all(len(part.base) <= 1 and len(part.head) <= 1 for part in parts)
    return f"{len(parts):,} {kind or ('dispatches' if whole else 'parts')}"


def _kind(part: Part) -> str:
    """`convolutions`, of `conv_8x8_f32` and of `conv_8x8_f32 + slow_memcpy`; "" of other work."""
    kinds = {_KINDS.get(operation.partition("_")[0], "") for operation in part.operation.split(" + ")} - {""}
    if len(kinds) > 1:
        kinds.discard(_KINDS["slow"])
    return kinds.pop() if len(kinds) == 1 else ""


def _why(group: Sequence[Part]) -> str:
    return f", where {group[0].what[0]}" if group[0].what else ""


def _by_itself(group: _Group, explanation: Explanation) -> str:
    """What dispatches take that are no shares of the call: `timed alone, matmul_8 goes from 4 ms to 9 ms`."""
    base_ns, head_ns = sum(part.base_ns for part in group), sum(part.head_ns for part in group)
    how = "in the profile" if explanation.method == "profile" else "timed alone"
    goes = "goes" if len(group) == 1 else "go"
    ratio = _ratio(head_ns / base_ns) if base_ns and head_ns else ""
    return f"{how}, {_who(group)} {goes} from {time_text(base_ns)} to {time_text(head_ns)}{ratio}{_why(group)}"


def _outside_words(base: Elsewhere, head: Elsewhere) -> str:
    """`the host 1.5 ms, copies 0.6 ms`, signed, the largest first."""
    changes = {
        name: head.device_ns.get(name, 0.0) - base.device_ns.get(name, 0.0)
        for name in dict.fromkeys((*base.device_ns, *head.device_ns))
    }
    changes["host"] = head.host_ns - base.host_ns
    largest = sorted(changes.items(), key=lambda item: -abs(item[1]))[:_MOST_NAMES]
    return ", ".join(f"{name} {'+' if change > 0 else '-'}{time_text(change)}" for name, change in largest if change)


def _uncertain(explanation: Explanation, total_ns: float, noun: str = "dispatch") -> list[str]:
    """Where no part's change is certain: what may be it, or that all of it stays as it is."""
    parts = explanation.parts
    if not total_ns:
        differing = sum(bool(part.differs_at) for part in parts)
        code = f"the code of {differing:,} of {plural(len(parts), 'dispatch', 'dispatches')} differs"
        return [f"{code}, and none of them is certain to take another time"] if differing else []
    if not parts:
        return []
    largest = max(parts, key=lambda part: abs(part.change_ns))
    named = f"{_who([largest])} seems to change most, by {time_text(largest.change_ns)}"
    return [f"no {noun}'s change is certain by itself; {named}{_why([largest])}"]


# --- compiles ---


def _passes(explanation: Explanation) -> str:
    """Which passes take another time, those that follow the compile as a whole first, and their shares of that."""
    total, parts = _change_ns(explanation), explanation.parts
    small = _SMALL * max([abs(total), *(abs(part.change_ns) for part in parts)])
    large = [part for part in parts if part.verdict in _CERTAIN and abs(part.change_ns) >= small]
    if not large:
        return (*_uncertain(explanation, total, "pass"), "no pass is certain to take another time")[0]
    large.sort(key=lambda part: (part.change_ns * total < 0, -abs(part.change_ns)))
    clauses = [(part.operation, part.change_ns) for part in large[:_MOST_GROUPS]]
    rest = total - sum(part.change_ns for part in parts) if total else 0.0
    if abs(rest) >= small:
        clauses.append(("what is in no pass", rest))
    shares = [
        f", {change / total * 100:.0f} % of the difference" if change * total > 0 else "" for _, change in clauses
    ]
    said = zip(clauses, shares, strict=True)
    return "; ".join(f"{who} takes {_more(change)}{share}" for (who, change), share in said)


# --- nothing differs ---


def _what_is_left(explanation: Explanation) -> str:
    """What can make a difference where the compiler's IR is the same at every phase that both sides have."""
    toolchains = (explanation.base.toolchains, explanation.head.toolchains)
    another = toolchains[0] != toolchains[1]
    same = f"its dispatches have the same {'IR' if another else 'code'} on both sides, and the same schedule"
    if not _change_ns(explanation):
        return same
    if another:
        return f"{same}, which leaves LLVM, the runtime ({' and '.join(map(enumerated, toolchains))}) and the machine"
    return f"{same}, which leaves how it is run (its flags, the device) and the machine"
