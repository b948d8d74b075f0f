"""What there is to say about a row beyond its figures, in plain words."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence

from harness.plugins.chain import PIPELINE_FLAG
from harness.records.case import Case
from harness.records.run import Build, Check, Failure, IrCounts, PluginEffect
from harness.report.run_row import Row, Status
from harness.report.units import percent
from harness.store.evidence import is_expected
from harness.text import plural
from harness.toolchain.tools import flag_name

# Our median and iree-benchmark-module's come from different processes; on the machines this was written on, fresh
# processes running one module differ by 6 to 14 %, so a smaller difference says nothing.
REFERENCE_FLOOR = 0.05
# Medians that are rounded may lie the other way round than a ratio near 1; this far apart it is no rounding.
_APART = 1.01


def fate_remarks(
    case: Case, status: Status, failure: Failure | None, check: Check | None, stand_in: Case | None
) -> Iterator[str]:
    """Why a row has no figures, or that it was not expected to have any."""
    if status == "skipped":
        yield f"skipped: {case.skip}"
    elif status == "missing":
        yield "missing: planned, but neither measured nor failed"
    elif failure is not None:
        cause = _cause(failure, check)
        if stand_in is not None:
            cause = f"same module as {stand_in.variant}: {cause}"
        yield f"expected to fail: {cause}" if status == "expected failure" else cause
        if case.known_to_fail and not is_expected(case, failure):
            yield f"expected to {_expectation(case)} instead"
    elif case.expected_mismatch and status in ("measured", "same") and not was_compared(check):
        yield "expected to give wrong outputs, which cannot be told: there is nothing to compare them with"
    elif case.known_to_fail and status in ("measured", "same"):
        yield f"expected to {_expectation(case)}, but works now"


def was_compared(check: Check | None) -> bool:
    """Whether a case's outputs were held against right ones, and not only looked at for being finite."""
    return check is not None and check.max_relative is not None


def check_remarks(check: Check | None) -> Iterator[str]:
    """That a check says little, since zeros would pass."""
    if check is not None and check.failure is None and check.below_tolerance:
        numbers = ", ".join(map(str, check.below_tolerance))
        which = f"output {numbers}" if len(check.below_tolerance) == 1 else f"outputs {numbers}"
        yield f"all values of {which} are within the tolerance of zero, so the check says little: zeros would pass"
    if check is not None and check.failure is None and check.against and not was_compared(check):
        yield f"not checked: {check.no_second_opinion or 'its values are finite, and that is all that is known'}"
    if check is not None and check.note:
        yield check.note
    if check is not None and check.failure is not None and check.reproducer:
        yield f"what shows it is kept in the cache folder, in {check.reproducer}"


def _expectation(case: Case) -> str:
    return "give wrong outputs" if case.expected_mismatch else f'fail with "{case.expected_failure}"'


def sharing_remarks(case: Case, stand_in: Case, baseline: str) -> Iterator[str]:
    """That a row's module is another's, of the same toolchain."""
    if stand_in.variant != baseline:
        yield f"same module as {stand_in.variant}"
        return
    added = [flag for flag in case.compile_flags if flag not in stand_in.compile_flags]
    what = "this flag" if len(added) == 1 and not case.plugins else "this variant"
    yield f"inert: {what} changes nothing in {case.toolchain} (same module as {stand_in.variant})"


def measuring_remarks(row: Row, *, generations: int, unusable: int) -> Iterator[str]:
    """What a reader should know about the samples behind a row."""
    if row.latency is not None and row.latency.generations < generations:
        yield f"measured in {row.latency.generations} of {generations} generations"
    elif row.estimate is not None and row.estimate.generations < generations:
        yield f"measured beside the baseline in {row.estimate.generations} of {generations} generations"
    if unusable:
        yield f"{unusable} {'turn' if unusable == 1 else 'turns'} without time on the clock left out"


def reference_remarks(row: Row) -> Iterator[str]:
    """That iree-benchmark-module failed."""
    if row.status == "measured" and row.latency is not None and row.reference and row.reference.failure is not None:
        yield f"iree-benchmark-module failed: {row.reference.failure.message}"


def reference_sentence(rows: Iterable[Row]) -> str:
    """That iree-benchmark-module says other times than we do, in how many rows and by how much; "" where it does not.

    Only differences count that are larger than the noise between processes.
    """
    asked, off = 0, []
    for row in rows:
        if row.status == "measured" and row.latency is not None and row.reference_ns is not None:
            asked += 1
            ratio = row.reference_ns / row.latency.median_ns
            if abs(math.log(ratio)) > max(REFERENCE_FLOOR, 2 * row.latency.spread):
                off.append(ratio)
    if not off:
        return ""
    ends = list(dict.fromkeys(map(percent, (min(off), max(off)))))
    return (
        f"iree-benchmark-module, in one process of its own for each case, says another time than the table in "
        f"{len(off)} of {plural(asked, 'row')} ({' to '.join(ends)}). The ratios are of turns side by "
        "side and do not depend on it."
    )


def medians_sentence(rows: Iterable[tuple[str, float | None, float | None, float | None]]) -> str:
    """Which medians lie the other way round than the ratio beside them, and why; "" where none do."""
    names = [
        name
        for name, base, head, ratio in rows
        if base
        and head
        and ratio
        and (head > base) != (ratio > 1)
        and max(head, base * ratio) > _APART * min(head, base * ratio)
    ]
    if not names:
        return ""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return (
        f"The medians of {names[0]}{more} say the opposite of the ratio: a median is of one side alone, while the "
        "machine changes its speed, and the ratio, which decides, is taken within rounds."
    )


def effect_remarks(case: Case, build: Build | None) -> Iterator[str]:
    """What plugins and preprocessing flags did to the program, above all where that was nothing."""
    effects = build.effects if build is not None else ()
    single = sum(effect.matched is None for effect in effects) == 1
    reason = _wrong_anchor(case) if any(not effect.changed for effect in effects if effect.matched is None) else ""
    for (name, rewrites), group in itertools.groupby(
        effects, key=lambda effect: (effect.name, effect.matched is not None)
    ):
        steps = tuple(group)
        idle = sum(not step.changed for step in steps)
        if rewrites:
            yield f"{name} {_matched(steps)}"
        elif idle == len(steps):
            yield f"{name} changed nothing{f' ({reason})' if reason and single else ''}"
        elif idle:
            yield f"{idle} of the {len(steps)} steps of {name} changed nothing"
    if reason and not single:
        yield reason


def _matched(effects: Sequence[PluginEffect]) -> str:
    """How many places the rewrites of one plugin matched, one after the other."""
    counts = [str(effect.matched) for effect in effects]
    text = f"{', '.join(counts[:-1])} and {counts[-1]}" if len(counts) > 1 else counts[0]
    nothing = any(effect.matched for effect in effects) and not any(effect.changed for effect in effects)
    matched = f"matched {text} {'place' if counts == ['1'] else 'places'}{', and changed nothing' if nothing else ''}"
    left = ", ".join(_places(number, what) for effect in effects for what, number in effect.left_alone.items())
    return f"{matched}; it left alone {left}" if left else matched


def _places(number: int, what: str) -> str:
    """`53 convolutions with dynamic sizes`, `1 convolution with dynamic sizes`."""
    noun, *rest = what.split(" ")
    return " ".join([f"{number:,}", noun.removesuffix("s") if number == 1 else noun, *rest])


def _wrong_anchor(case: Case) -> str:
    """Why a pass pipeline matches nothing, where it makes the usual mistake."""
    pipelines = [flag for flag in case.compile_flags if flag_name(flag) == PIPELINE_FLAG]
    if any(re.search(r"(?<![\w.])func\.func\(", flag) for flag in pipelines):
        return "passes for func.func find nothing, since functions are util.func by then"
    return ""


def counting_remarks(counted: IrCounts | None) -> Iterator[str]:
    """That the ops of a case could not be counted, or at some phases, or its encoded tensors not be sized."""
    if counted is not None and counted.lacking:
        phases = ", ".join(counted.lacking)
        yield f"its release of IREE does not have the {'phases' if len(counted.lacking) > 1 else 'phase'} {phases}"
    if counted is not None and counted.failure is not None:
        yield f"its ops were not counted: {counted.failure.message}"
    if counted is not None and counted.storage_failure is not None:
        yield counted.storage_failure.message


def warning_remarks(build: Build | None) -> Iterator[str]:
    """What the compiler printed although it succeeded."""
    if build is not None:
        yield from (f"compiler warning: {warning}" for warning in build.warnings)


def _cause(failure: Failure, check: Check | None) -> str:
    if failure.stage != "verify" or check is None or not check.against:
        return f"failed at {failure.stage}: {failure.message}"
    text = f"wrong output: {failure.message}"
    if check.max_absolute and not check.reference and check.relative_tolerance:
        relative = f"{check.relative_tolerance:.2g}"
        absolute = f"{check.absolute_tolerance:.2g}" if check.absolute_tolerance else f"{relative} of their mean square"
        text += f" (allowed: {absolute}, and {relative} of each value)"
    return text
