"""Whether head's outputs are base's decides a row before its time does."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.compare.comparison import conclude, plan_comparison
from harness.compare.options import CompareOptions
from harness.compare.pairs import Side
from harness.records.comparison import Comparison
from harness.records.run import ArgumentRecord, Check, Failure, Sizes
from harness.verify.kept import keep_outputs
from tests.compare.runs import MODEL, a_case, a_side

STOCK = a_case("stock")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the runs' outputs are kept."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    return tmp_path


def side(
    cache: Path,
    values: list[float] | None,
    *,
    code: str,
    program: str = "aa",
    inputs: str = "x",
    case_id: str = "x",
    against: str = "",
    max_relative: float | None = None,
) -> Side:
    """A run of one case that gave these values; None: of a harness that kept none."""
    case = replace(STOCK, id=case_id)
    argument = ArgumentRecord(file=f"models/{program}/inputs-{inputs}/input0.npy", shape=(2,), dtype="f32")
    model = replace(MODEL, mlir_sha256=program * 32, arguments=(argument,), inputs=("2xf32",))
    made = a_side(case, code={STOCK.name: code}, model=model, label=f"results/{code}")
    check = Check(
        case=STOCK.name,
        against=against,
        command=(),
        relative_tolerance=0.01,
        absolute_tolerance=0.0,
        max_relative=max_relative,
    )
    if values is not None:
        check = replace(check, outputs=keep_outputs([np.array(values, np.float32)], cache))
    return replace(made, evidence=replace(made.evidence, checks={STOCK.name: check}))


def with_build(made: Side, **fields: Any) -> Side:
    """The run with more that compiling its case gave."""
    build = replace(made.evidence.builds[STOCK.name], **fields)
    return replace(made, evidence=replace(made.evidence, builds={STOCK.name: build}))


def compared(base: Side, head: Side) -> Comparison:
    plan = plan_comparison(base, head, CompareOptions(remeasure=False))
    return conclude(plan, [], {}, created=datetime.now(timezone.utc))


def test_a_difference_beyond_the_tolerance_is_the_row(cache: Path) -> None:
    comparison = compared(side(cache, [1, 2], code="base"), side(cache, [1, 3], code="head"))
    (row,) = comparison.rows  # no figure of a module that gives other outputs is an improvement
    assert row.verdict == "outputs differ"
    assert row.reason == "head's output 0 differs in 1 of 2 values, worst at [1]: 3 where 2 is base's"


@pytest.mark.parametrize("values", [[1, 2], [1.005, 2]])
def test_outputs_that_agree_leave_the_row_to_its_times(cache: Path, values: list[float]) -> None:
    plan = plan_comparison(
        side(cache, [1, 2], code="base"), side(cache, values, code="head"), CompareOptions(remeasure=False)
    )
    assert [pair.name for pair in plan.open] == [STOCK.name]


@pytest.mark.parametrize(
    ("head", "note"),
    [
        ({"values": None}, "Outputs of 1 case were not compared: a run is of a harness that kept none"),
        ({"inputs": "y"}, "Outputs of 1 case were not compared: the two sides are called with other inputs"),
    ],
)
def test_a_note_says_which_outputs_were_not_compared(cache: Path, head: dict[str, Any], note: str) -> None:
    other = side(cache, **{"values": [1, 3], "code": "head", **head})
    assert note in compared(side(cache, [1, 2], code="base"), other).notes


def test_outputs_that_left_the_cache_are_not_compared(cache: Path) -> None:
    sides = side(cache, [1, 2], code="base"), side(cache, [1, 3], code="head")
    for file in (cache / "outputs").iterdir():
        file.unlink()
    assert "Outputs of 1 case were not compared: they are no longer in the cache" in compared(*sides).notes


@pytest.mark.parametrize(
    ("values", "remark", "fate"),
    [
        ([1, 2], "another program than the base's, with the same outputs", "are the same"),
        ([1, 3], "another program than the base's, and its output 0 differs in 1 of 2 values", "differ"),
        (None, "another program than the base's; outputs were not compared", "were not compared"),
    ],
)
def test_another_program_is_compared_and_says_so(
    cache: Path, values: list[float] | None, remark: str, fate: str
) -> None:
    base = side(cache, [1, 2], code="base")
    head = side(cache, values, code="head", program="bb", case_id="another")
    plan = plan_comparison(base, head, CompareOptions(remeasure=False, by_name=True))
    known = plan.outputs[STOCK.name]
    assert known.verdict is None
    assert known.remark.startswith(remark)
    notes = conclude(plan, [], {}, created=datetime.now(timezone.utc)).notes
    note = "The model of 1 case is another program in the head than in the base: outputs"
    assert [text for text in notes if "program" in text] == [f"{note} {fate} in 1 ({STOCK.name})"]


def test_what_two_releases_make_of_one_file_is_one_program(cache: Path) -> None:
    """The case is the same by its id, which holds the file: another import of it that gives other outputs is wrong."""
    base, head = side(cache, [1, 2], code="base"), side(cache, [1, 3], code="head", program="bb")
    assert [row.verdict for row in compared(base, head).rows] == ["outputs differ"]


@pytest.mark.parametrize(
    ("against", "values", "differ"),
    [
        ("expected files", [1, 2.05], False),  # 1 % of the value and of the root mean square, on both sides
        ("expected files", [1, 2.1], True),
        (STOCK.name, [1, 2.05], True),  # a case of the run itself is another thing in another run
    ],
)
def test_what_is_right_on_both_sides_differs_by_up_to_twice_the_tolerance(
    cache: Path, against: str, values: list[float], differ: bool
) -> None:
    held: dict[str, Any] = {"against": against, "max_relative": 0.01}
    base, head = side(cache, [1, 2], code="base", **held), side(cache, values, code="head", **held)
    known = plan_comparison(base, head, CompareOptions(remeasure=False)).outputs[STOCK.name]
    assert (known.difference is not None) == differ


def test_a_function_without_results_has_nothing_to_compare(cache: Path) -> None:
    sides = [side(cache, None, code=code) for code in ("base", "head")]
    assert len(compared(*sides).notes) == 1
    sides = [with_build(made, outputs=0) for made in sides]
    assert compared(*sides).notes == ()


def test_a_smaller_module_that_gives_wrong_outputs_is_no_improvement(cache: Path) -> None:
    base, head = (
        with_build(
            side(cache, [1, 2], code=code),
            sizes=Sizes(module_bytes=size, vm_bytes=0, constant_bytes=0, dispatch_bytes={}),
        )
        for code, size in (("base", 2), ("head", 1))
    )
    assert "improved" in {row.verdict for row in compared(base, head).rows}
    wrong = Failure(stage="verify", message="its output 0 differs", mismatch=True)
    check = replace(head.evidence.checks[STOCK.name], failure=wrong)
    head = replace(head, evidence=replace(head.evidence, checks={STOCK.name: check}))
    assert [row.verdict for row in compared(base, head).rows] == ["failed"]
