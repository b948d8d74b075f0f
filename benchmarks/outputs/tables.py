"""What was judged -> the tables of docs/statistics.md: every number in it is counted, none is typed."""

from collections.abc import Sequence
from datetime import datetime, timezone

import numpy as np
from iree.compiler.version import VERSION

from benchmarks.outputs.functions import Off
from benchmarks.outputs.judging import FLAG_SETS, TARGETS
from benchmarks.outputs.planted import Defect, Planted
from benchmarks.outputs.right import Row
from harness.machine.environment import processor
from harness.report.markdown import blocks, details, table
from harness.stats.intervals import rate_bounds
from harness.toolchain.host_cpu import environment_here
from harness.verify.rounding import FACTOR

NONE = "-"
# The root mean square of what shaking adds is this part of its width.
_UNIFORM = 3.0**-0.5


def right_table(rows: Sequence[Row], failed: Sequence[str]) -> str:
    """A line a family."""
    families = list(dict.fromkeys(row.family for row in rows))
    lines = [_line(family, [row for row in rows if row.family == family]) for family in families]
    refused = [row for row in rows if row.beyond]
    bound = rate_bounds(len(refused), len(rows))[1]
    heads = ["family", "programs", "outputs", "refused", "calibrating half, spreads", "other half, spreads"]
    programs = len({(row.family, row.seed) for row in rows})
    measured = f"{processor(environment_here())}, {datetime.now(timezone.utc):%Y-%m-%d}"
    said = (
        f"{programs} programs x {len(FLAG_SETS)} flag sets x {len(TARGETS)} targets ({', '.join(TARGETS)}) on IREE "
        f"{VERSION}, {measured}: {len(refused)} of {len(rows):,} outputs refused, at most "
        f"{100 * bound:.2g} % (upper end of the 95 % interval). An output is refused beyond {FACTOR:g} spreads. The "
        f"largest error of {sum(row.elements for row in rows):,} elements is {_most(rows)} spreads."
    )
    problems = [f"- {row.name}: {row.beyond} of {row.elements}, {row.at}" for row in refused]
    return blocks(
        said,
        table(heads, [*lines, _line("all", rows)], numbers=[False, *[True] * 5]),
        "\n".join([*problems, *(f"- {sentence}" for sentence in failed)]),
    )


def _line(family: str, rows: Sequence[Row]) -> list[str]:
    halves = [[row for row in rows if row.seed % 2 == odd] for odd in (0, 1)]
    programs = len({(row.family, row.seed) for row in rows})
    return [family, str(programs), f"{len(rows):,}", str(sum(row.beyond > 0 for row in rows)), *map(_most, halves)]


def _most(rows: Sequence[Row]) -> str:
    return f"{max((row.spreads for row in rows), default=0.0):.2f}"


def fault_table(planted: Sequence[Planted], failed: Sequence[str]) -> str:
    """How many were found, and which not."""
    missed = [one for one in planted if one.verdict.is_right]
    wrong_controls = [one for one in planted if one.control is not None and not one.control.is_right]
    share = 100 * (1 - len(missed) / max(1, len(planted)))
    said = (
        f"{len(planted) - len(missed)} of {len(planted)} planted faults are found ({share:.1f} %). The right forms, "
        f"compiled with them: {len(wrong_controls)} refused."
    )
    names = [f"- not found: {one.name} (largest error {one.verdict.spreads:.2g} spreads)" for one in missed]
    names += [f"- right form refused: {one.name} ({one.control.at if one.control else ''})" for one in wrong_controls]
    lines = [
        [one.name, f"{one.verdict.beyond:,} of {one.verdict.elements:,}", _spreads(one.verdict.spreads),
         _spreads(one.control.spreads) if one.control else NONE]
        for one in planted
    ]  # fmt: skip
    heads = ["fault", "elements refused", "largest error, spreads", "of the right form"]
    return blocks(
        said,
        "\n".join([*names, *(f"- {sentence}" for sentence in failed)]),
        details("Each fault", table(heads, lines, numbers=[False, True, True, True])),
    )


def _spreads(value: float) -> str:
    if np.isinf(value):
        return "exact element"
    return f"{value:.3g}" if value < 1e4 else f"{value:.1e}"


def defect_table(defects: Sequence[Defect], failed: Sequence[str]) -> str:
    """What IREE compiles wrongly."""
    lines = []
    for one in defects:
        wrong = ~np.isclose(one.got, one.right, rtol=1e-6, atol=0, equal_nan=True)
        place = np.argmax(wrong)
        lines.append(
            [one.name, one.target, "right" if one.verdict.is_right else "refused", f"{one.got.flat[place]:.8g}",
             f"{one.right.flat[place]:.8g}"]
        )  # fmt: skip
    heads = ["program", "target", "judged", "is", "by NumPy"]
    return blocks(
        table(heads, lines, numbers=[False, False, False, True, True]),
        "\n".join(f"- {sentence}" for sentence in failed),
    )


def function_table(found: Sequence[Off]) -> str:
    """What functions of the math dialect are off by."""
    lines = []
    for one in found:
        limit = FACTOR * _UNIFORM * (2.0 + one.allowed)
        units = [_units(value) for value in one.units] or [NONE] * len(TARGETS)
        lines.append(
            [
                f"`math.{one.name}`",
                one.kind,
                *units,
                f"{one.at:.4g}" if one.units else "does not compile",
                f"{limit:.0f}",
            ]
        )
    heads = ["function", "type", *TARGETS, "at", "refused beyond"]
    return table(heads, lines, numbers=[False, False, *[True] * (len(TARGETS) + 2)])


def _units(value: float) -> str:
    return "NaN or infinite" if np.isinf(value) else f"{value:.3g}"
