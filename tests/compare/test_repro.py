"""What repeats a row: one command line, and a comment for each side's module."""

from __future__ import annotations

import hashlib
import shlex

import pytest

from harness.compare.pairs import Pair, Side
from harness.compare.repro import with_repro
from harness.records.comparison import Row
from harness.records.run import Failure
from tests.compare.runs import a_case, a_side

STOCK, FAST = a_case("stock"), a_case("fast")
PAIR = Pair(name=FAST.name, base=STOCK, head=FAST)
COMMAND = "iree-compile model.mlir -o module.vmfb"


def a_row(metric: str = "latency", case: str = "net/fast@cpu", *, control: bool = False) -> Row:
    return Row(
        case=case, model="net", variant="fast", device="cpu", metric=metric, verdict="regressed", control=control
    )


def lines(row: Row, base: Side, head: Side, *options: str, within: bool = False, pair: Pair = PAIR) -> tuple[str, ...]:
    return with_repro(row, pair, base, head, options, within=within).repro


def digits(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()[:12]


def test_two_runs() -> None:
    base, head = a_side(STOCK), a_side(FAST, label="results/my head")
    assert lines(a_row(), base, head) == (
        "harness compare results/base 'results/my head' --filter net/fast@cpu",
        f"# base: module {digits(STOCK.name)}, {COMMAND}",
        f"# head: module {digits(FAST.name)}, {COMMAND}",
    )
    assert lines(a_row("compile-time"), base, head) == lines(a_row(), base, head)


def test_within_a_run() -> None:
    side = a_side(STOCK, FAST)
    command = lines(a_row(), side, side, "--no-remeasure", within=True)[0]
    assert command == "harness compare --within results/base --filter net/fast@cpu --no-remeasure"


def test_a_toolchain_needs_its_suite() -> None:
    base, head = a_side(STOCK), a_side(FAST, label="iree==3.13.0")
    assert lines(a_row(), base, head)[0] == (
        "harness compare results/base iree==3.13.0 --suite suites/small.toml --filter net/fast@cpu"
    )


def test_a_control_asks_for_itself() -> None:
    assert lines(a_row(control=True), a_side(STOCK), a_side(FAST))[0].endswith("--filter net/fast@cpu --controls 1")


def test_a_filter_matches_the_row_alone() -> None:
    command = lines(a_row(case="net/[a-c]*@cpu (base)"), a_side(STOCK), a_side(FAST))[0]
    assert shlex.split(command)[-1] == "net/[[]a-c][*]@cpu (base)"


def test_a_side_without_a_module() -> None:
    crash = Failure(stage="compile", message="it crashed")
    base, head = a_side(STOCK, uncompiled=[STOCK.name]), a_side(FAST, failures={FAST.name: crash})
    assert lines(a_row(), base, head)[1:] == ("# base: was never compiled", f"# head: no module, {COMMAND}")
    alone = Pair(name=FAST.name, base=None, head=FAST)
    assert lines(a_row(), base, head, pair=alone)[1] == "# base: has no such case"


@pytest.mark.parametrize("metric", ["copies", "instructions", "module-size"])
def test_what_is_counted_is_repeated_with_its_latency(metric: str) -> None:
    assert lines(a_row(metric), a_side(STOCK), a_side(FAST)) == ()
