"""Do head's outputs agree with base's? Asked before anything is timed, of what the two runs kept of their checks.

Each run holds its outputs against expected files, ONNX Runtime or its own baseline. Where both sides passed and yet
differ from each other by more than the tolerance, one of them is wrong, and no latency is worth comparing. Where the
program itself is another one, other outputs may be what was meant: the row is compared, and says what changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.compare.pairs import Known, Pair, Side
from harness.models.model import Tolerance
from harness.records.case import Case
from harness.records.comparison import AND_OTHER_OUTPUTS, ANOTHER_PROGRAM
from harness.records.run import Check, ModelRecord
from harness.verify.cases import UNCHECKED
from harness.verify.difference import Right, compare_outputs
from harness.verify.kept import kept_outputs, tolerance_of

# What is right to within the tolerance on both sides differs by up to twice as much.
_BOTH_WAYS = 2.0


@dataclass(frozen=True, kw_only=True)
class OutputsOfPair:
    """What is known of the outputs of both sides of a pair."""

    same_program: bool  # Whether both sides compile the same text, or what two releases make of the same file
    # In which way head's outputs are not base's, as a phrase; None: they agree, or nothing is known
    difference: str | None = None
    unknown: str | None = None  # Why they could not be compared, as a phrase; None: they were

    @property
    def verdict(self) -> Known | None:
        """The pair's verdict, where its outputs decide it."""
        if self.difference is None or not self.same_program:
            return None
        return Known(verdict="outputs differ", reason=f"head's {self.difference}")

    @property
    def remark(self) -> str:
        """What the row of a changed program says beside its figures; "" where the program is the same."""
        if self.same_program:
            return ""
        if self.difference is not None:
            return f"{AND_OTHER_OUTPUTS}{self.difference}"
        if self.unknown is not None:
            return f"{ANOTHER_PROGRAM}; outputs were not compared: {self.unknown}"
        return f"{ANOTHER_PROGRAM}, with the same outputs"


def compare_pair(pair: Pair, base: Side, head: Side, cache: Path) -> OutputsOfPair:
    """Compare the outputs that the two runs kept of a pair's cases, within the tolerance of the head's suite."""
    base_case, head_case = pair.both
    models = base.evidence.models.get(base_case.model), head.evidence.models.get(head_case.model)
    checks = base.evidence.checks.get(base_case.name), head.evidence.checks.get(head_case.name)
    if models[0] is None or models[1] is None or checks[0] is None or checks[1] is None:
        return OutputsOfPair(same_program=True, unknown="a run is not finished")
    same_program = base_case.id == head_case.id or models[0].mlir_sha256 == models[1].mlir_sha256
    if _inputs(models[0]) != _inputs(models[1]):
        return OutputsOfPair(same_program=same_program, unknown="the two sides are called with other inputs")
    if not _gives_any(base_case, base) and not _gives_any(head_case, head):
        return OutputsOfPair(same_program=same_program)
    if UNCHECKED in (checks[0].against, checks[1].against):
        return OutputsOfPair(same_program=same_program, unknown='the suite says check = "none"')
    if not checks[0].outputs or not checks[1].outputs:
        return OutputsOfPair(same_program=same_program, unknown="a run is of a harness that kept none")
    if checks[0].outputs == checks[1].outputs:
        return OutputsOfPair(same_program=same_program)
    if checks[0].reference and checks[0].reference == checks[1].reference:
        return OutputsOfPair(same_program=same_program)  # one reference has judged both
    base_outputs, head_outputs = (kept_outputs(check.outputs, cache) for check in checks if check is not None)
    if base_outputs is None or head_outputs is None:
        return OutputsOfPair(same_program=same_program, unknown="they are no longer in the cache")
    tolerance = _tolerance(checks[0], checks[1], of_case=checks[1].against in head.cases)
    right = Right(source="base", outputs=base_outputs)
    problem = compare_outputs(head_outputs, right, tolerance, whose="base's", same_elements=True).problem
    return OutputsOfPair(same_program=same_program, difference=problem)


def _gives_any(case: Case, side: Side) -> bool:
    """Whether a case's function has results."""
    build = side.evidence.builds.get(case.name)
    return build is None or build.outputs != 0


def _tolerance(base: Check, head: Check, *, of_case: bool) -> Tolerance:
    """The tolerance of the head's suite; twice that where both sides were held against the same thing."""
    same = base.against == head.against and base.max_relative is not None and not of_case
    factor = _BOTH_WAYS if same else 1.0
    return tolerance_of(head, factor)


def _inputs(model: ModelRecord) -> list[tuple[str, ...]]:
    """What a model is called with: the files' folder is named by the content of all of them."""
    return [Path(argument.file).parts[-2:] for argument in model.arguments]
