"""Which case meets which, and what is known of two cases before anything is measured."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.compare.comparison import conclude, plan_comparison
from harness.compare.options import CompareOptions
from harness.compare.pairs import (
    DecidedRow,
    Pair,
    Side,
    compare_pair,
    pair_peers,
    pair_runs,
    pair_variants,
    redefinition,
    what_is_known,
)
from harness.errors import UsageError
from harness.records.case import Case
from harness.records.comparison import Verdict
from harness.records.run import ArgumentRecord, Check, Failure, Lost, ToolchainRecord
from harness.store.evidence import why_refused
from harness.verify.cases import keep_outputs
from tests.compare.runs import MODEL, TOOLCHAIN, a_case, a_side

STOCK, FAST = a_case("stock"), a_case("fast")
REFERENCE, OLD, NEW = (replace(TOOLCHAIN, version=version) for version in ("3.11.0", "3.12.0", "3.13.0"))
LAST_WORDS = "last words"
CRASH = Failure(stage="compile", message="iree-compile crashed", stderr=LAST_WORDS)

Names = list[tuple[str, str | None, str | None]]


def of(case: Case, toolchain: ToolchainRecord) -> Case:
    """The case as a run of several toolchains has it."""
    return replace(case, toolchain=toolchain.version, name=f"{case.name}:{toolchain.version}")


def names(pairs: Sequence[Pair]) -> Names:
    """Name of each pair, and of its cases."""
    return [(pair.name, pair.base.name if pair.base else None, pair.head.name if pair.head else None) for pair in pairs]


def fate(base: Side, head: Side, name: str) -> DecidedRow | str | None:
    (pair,) = [pair for pair in pair_runs(base, head) if pair.name == name]
    return what_is_known(pair, base, head)


def said_of(case: Case) -> str:
    """An excerpt of what the compiler said of a case, and where all of it is."""
    log = f"results/20261121-035012-small/logs/{case.name.replace('/', ',')}.stderr.txt"
    return f"{LAST_WORDS}\n\nAll that iree-compile said: {log}"


def known(verdict: Verdict, reason: str, stderr: str = "") -> DecidedRow:
    return DecidedRow(verdict=verdict, reason=reason, stderr=stderr)


# --- Two runs ---

RENAMED = replace(STOCK, name="net/default@cpu", variant="default")
ALIAS = replace(FAST, id=STOCK.id)
QUICK = replace(FAST, name="net/quick@cpu")
ITSELF = (STOCK.name, STOCK.name, STOCK.name)
BOTH = [ITSELF, (FAST.name, FAST.name, FAST.name)]


@pytest.mark.parametrize(
    ("base", "head", "by_name", "pairs"),
    [
        pytest.param(
            [STOCK, FAST],
            [FAST, RENAMED],
            False,
            [BOTH[1], ("net/default@cpu", STOCK.name, "net/default@cpu")],
            id="by what they are and not by their names",
        ),
        pytest.param(
            [STOCK, a_case("gone")],
            [STOCK, a_case("more")],
            False,
            [ITSELF, ("net/more@cpu", None, "net/more@cpu"), ("net/gone@cpu", "net/gone@cpu", None)],
            id="one that the other side lacks is a pair too, the head's first",
        ),
        pytest.param([STOCK, ALIAS], [ALIAS, STOCK], False, BOTH[::-1], id="of two with the same flags by name"),
        pytest.param([STOCK], [ALIAS, STOCK], False, [(FAST.name, None, FAST.name), ITSELF], id="and no other"),
        pytest.param(
            [STOCK, FAST],
            [replace(STOCK, id="ab" * 8), QUICK],
            True,
            [ITSELF, (QUICK.name, FAST.name, QUICK.name)],
            id="by name a redefined case meets itself, and a renamed one its like",
        ),
        pytest.param(
            [STOCK, FAST],
            [replace(STOCK, id=FAST.id), replace(FAST, id=STOCK.id)],
            True,
            BOTH,
            id="names come before definitions where that is asked for",
        ),
    ],
)
def test_cases_of_two_runs_meet(base: list[Case], head: list[Case], by_name: bool, pairs: Names) -> None:
    assert names(pair_runs(a_side(*base), a_side(*head), by_name=by_name)) == pairs


BOTH_OLD, BOTH_NEW = (":3.12.0", ":3.12.0", ":3.12.0"), (":3.13.0", ":3.13.0", ":3.13.0")


@pytest.mark.parametrize(
    ("base", "head", "pairs"),
    [
        ([OLD], [NEW], [(":3.13.0", ":3.12.0", ":3.13.0")]),  # one a side is what is compared
        ([OLD, NEW], [OLD, NEW], [BOTH_OLD, BOTH_NEW]),  # several meet their own releases
        ([OLD, NEW], [NEW], [BOTH_NEW, (":3.12.0", ":3.12.0", None)]),
        # The newest of several meets one that they do not have: so do the newest of two nights.
        ([REFERENCE], [OLD, NEW], [(":3.12.0", None, ":3.12.0"), (":3.13.0", ":3.11.0", ":3.13.0")]),
        (
            [REFERENCE, OLD],
            [REFERENCE, NEW],
            [(":3.11.0", ":3.11.0", ":3.11.0"), (":3.13.0", ":3.12.0", ":3.13.0")],
        ),
    ],
)
def test_toolchains_of_two_runs(base: list[ToolchainRecord], head: list[ToolchainRecord], pairs: Names) -> None:
    sides = (a_side(*(of(STOCK, toolchain) for toolchain in side), toolchains=side) for side in (base, head))
    found = names(pair_runs(*sides))
    assert [tuple(name and name.removeprefix(STOCK.name) for name in pair) for pair in found] == pairs


def test_runs_with_no_case_in_common() -> None:
    with pytest.raises(UsageError, match="this and that have no case in common; compare runs of one suite, or cases"):
        pair_runs(a_side(STOCK, label="this"), a_side(FAST, label="that"))
    alone = a_side(STOCK, label="results/x")
    with pytest.raises(UsageError, match="results/x: has no variant beside the baseline; compare it with another run"):
        plan_comparison(alone, alone, CompareOptions(within=Path("results/x")))


# --- One run ---


TILED = a_case("tiled")
PEER = a_case("onnxruntime", peer="onnxruntime", toolchain="")
BOTH_CRASH = dict.fromkeys([STOCK.name, FAST.name], CRASH)


@pytest.mark.parametrize(
    ("side", "base", "why"),
    [
        (a_side(STOCK, FAST), STOCK, ""),
        (a_side(STOCK, FAST, TILED, failures={STOCK.name: CRASH}), FAST, "failed at compile"),
        (a_side(replace(STOCK, skip="no GPU"), FAST), FAST, "is skipped"),
        # The first that is right, and of IREE; where none is, the suite's.
        (a_side(STOCK, PEER, FAST, TILED, failures=BOTH_CRASH), TILED, "failed at compile"),
        (a_side(STOCK, FAST, failures=BOTH_CRASH), STOCK, "failed at compile"),
    ],
)
def test_what_a_group_is_compared_with(side: Side, base: Case, why: str) -> None:
    assert side.baselines["net@cpu"].name == base.name
    assert why_refused(side.run.header.cases[0], side.evidence) == why


def test_within_a_run_a_refused_baseline_is_a_row_of_its_own() -> None:
    side = a_side(STOCK, FAST, TILED, PEER, failures={STOCK.name: CRASH})
    assert names(pair_variants(side)) == [
        (STOCK.name, FAST.name, STOCK.name),
        (TILED.name, FAST.name, TILED.name),
    ]
    fates = [what_is_known(pair, side, side) for pair in pair_variants(side)]
    assert fates == [known("failed", "fails at compile: iree-compile crashed", said_of(STOCK)), None]
    assert names(pair_peers(side)) == [(PEER.name, FAST.name, PEER.name)]


def test_a_case_fails_with_the_one_that_was_measured_in_its_place() -> None:
    side = a_side(STOCK, FAST, a_case("inert"), code={"net/inert@cpu": FAST.name})
    lost = Lost(case=FAST.name, failure=Failure(stage="measure", message="it crashed"), generation=1)
    side = Side(replace(side.run, lost=(lost,)), side.label)
    fates = {pair.name: what_is_known(pair, side, side) for pair in pair_variants(side)}
    assert fates["net/inert@cpu"] == fates[FAST.name] == known("failed", "fails at measure: it crashed")


# --- A case that one side lacks ---

CHANGED = replace(FAST, id="f" * 16, compile_flags=("--b",), run_flags=("--r",))


def test_one_name_with_two_definitions_is_missing_and_new() -> None:
    old = replace(FAST, compile_flags=("--a",), run_flags=("--r",))
    base, head = a_side(STOCK, old), a_side(STOCK, CHANGED)
    assert names(pair_runs(base, head))[1:] == [
        ("net/fast@cpu", None, "net/fast@cpu"),
        ("net/fast@cpu (base)", "net/fast@cpu", None),
    ]
    how = "case of this name is another one: the head adds --b and leaves out --a"
    assert fate(base, head, "net/fast@cpu") == known("new", f"the base's {how}")
    assert fate(base, head, "net/fast@cpu (base)") == known("missing", f"the head's {how}")


@pytest.mark.parametrize(
    ("base", "head", "how"),
    [
        (
            replace(STOCK, compile_flags=("--a", "--b=1")),
            replace(STOCK, compile_flags=("--a", "--b=2"), plugins=("fold",)),
            "the head adds --b=2, plugin fold and leaves out --b=1",
        ),
        (STOCK, replace(STOCK, uri="local-task"), f"the head adds device local-task and leaves out device {STOCK.uri}"),
        (STOCK, STOCK, "the order of its flags, its model's definition or options of its plugins differ"),
    ],
)
def test_how_the_head_defines_a_case_flag_by_flag(base: Case, head: Case, how: str) -> None:
    assert redefinition((base, a_side(base)), (head, a_side(head))) == how


# --- Skips, failures and identity ---

PLAIN, SKIPPED, UNCOMPILED = (
    a_side(STOCK),
    a_side(replace(STOCK, skip="no GPU")),
    a_side(STOCK, uncompiled=[STOCK.name]),
)
FAILS = "fails at compile: iree-compile crashed"
NEWLY_FAILING = a_side(STOCK, FAST, failures={FAST.name: CRASH})
NEWLY_EXPECTED = a_side(STOCK, replace(FAST, expected_failure="crashed"), failures={FAST.name: CRASH})


def failing(expected: str | None = None) -> Side:
    return a_side(replace(STOCK, expected_failure=expected), failures={STOCK.name: CRASH})


@pytest.mark.parametrize(
    ("base", "head", "expected"),
    [
        (PLAIN, SKIPPED, known("missing", "measured in the base, and skipped in the head: no GPU")),
        (SKIPPED, PLAIN, known("new", "skipped in the base: no GPU")),
        (PLAIN, failing(), known("failed", FAILS, said_of(STOCK))),
        (failing(), failing(), known("failed", f"{FAILS} (and so does the base)", said_of(STOCK))),
        (failing(), PLAIN, known("new", "works, where the base failed at compile")),
        (PLAIN, failing("crashed"), "expected to fail"),
        (PLAIN, failing("ran out of memory"), known("failed", FAILS, said_of(STOCK))),
        (PLAIN, UNCOMPILED, known("missing", "the head was never compiled")),
        (PLAIN, PLAIN, known("identical", "same module bytes, same runtime")),
        # One that the base lacks.
        (PLAIN, a_side(STOCK, FAST), known("new", "the base has no such case")),
        (PLAIN, a_side(STOCK, replace(FAST, skip="no GPU")), "skipped: no GPU"),  # nobody's news
        (PLAIN, NEWLY_FAILING, known("failed", f"{FAILS} (the base has no such case)", said_of(FAST))),
        (PLAIN, NEWLY_EXPECTED, "expected to fail"),
        # All else has to be measured: other module bytes, builds of the release, revisions or run flags.
        (PLAIN, a_side(STOCK, code={STOCK.name: "other code"}), None),
        (PLAIN, a_side(STOCK, toolchains=[replace(TOOLCHAIN, compiler_sha256="dd" * 32)]), None),
        (PLAIN, a_side(replace(STOCK, run_flags=("--task_topology_max_group_count=1",))), None),
    ],
)
def test_what_is_known_of_a_case_before_it_is_measured(
    base: Side, head: Side, expected: DecidedRow | str | None
) -> None:
    assert fate(base, head, head.run.header.cases[-1].name) == expected


# --- Outputs ---


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the runs' outputs are kept."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    return tmp_path


def side(
    cache: Path,
    code: str,
    *,
    values: Sequence[float] | None = (1, 2),
    program: str = "aa",
    inputs: str = "x",
    case_id: str = "x",
    **check: Any,
) -> Side:
    """A run of one case that gave these values; None: of a harness that kept none."""
    argument = ArgumentRecord(file=f"models/{program}/inputs-{inputs}/input0.npy", shape=(2,), dtype="f32")
    model = replace(MODEL, mlir_sha256=program * 32, arguments=(argument,), inputs=("2xf32",))
    made = a_side(replace(STOCK, id=case_id), code={STOCK.name: code}, model=model, label=f"results/{code}")
    if values is not None:
        check["outputs"] = keep_outputs([np.array(values, np.float32)], cache)
    tolerance = {"relative_tolerance": 0.01, "absolute_tolerance": 0.0}
    kept = Check(case=STOCK.name, **{"against": "", "command": (), **tolerance, **check})
    return replace(made, run=replace(made.run, checks=(kept,)))


ANOTHER: dict[str, Any] = {"program": "bb", "case_id": "another"}
IS_ANOTHER = "another program than the base's"
DIFFERS = "output 0 differs in 1 of 2 values, worst at [1]: 3 where 2 is base's"
BEYOND = "output 0 differs in 1 of 2 values, worst at [1]: {} where 2 is base's"
BY_FILES: dict[str, Any] = {"against": "expected files", "max_relative": 0.01}
BY_ITSELF: dict[str, Any] = {"against": STOCK.name, "max_relative": 0.01}


@pytest.mark.parametrize(
    ("held", "head", "verdict", "said"),
    [
        ({}, {"values": [1.005, 2]}, None, ""),
        ({}, {"values": [1, 3]}, "outputs differ", f"head's {DIFFERS}"),
        # 1 % of the value and of the root mean square, on both sides; a case of the run itself is another one there.
        (BY_FILES, {"values": [1, 2.05]}, None, ""),
        (BY_FILES, {"values": [1, 2.1]}, "outputs differ", f"head's {BEYOND.format('2.1')}"),
        (BY_ITSELF, {"values": [1, 2.05]}, "outputs differ", f"head's {BEYOND.format('2.05')}"),
        # Two releases import one file, which the case's id holds: one of them is wrong.
        ({}, {"values": [1, 3], "program": "bb"}, "outputs differ", f"head's {DIFFERS}"),
        ({}, ANOTHER, None, f"{IS_ANOTHER}, with the same outputs"),
        ({}, {**ANOTHER, "values": [1, 3]}, None, f"{IS_ANOTHER}, and its {DIFFERS}"),
        (
            {},
            {**ANOTHER, "values": None},
            None,
            f"{IS_ANOTHER}; outputs were not compared: a run is of a harness that kept none",
        ),
    ],
)
def test_outputs_that_differ_decide_the_row_of_one_program_and_are_said_of_another(
    cache: Path, held: dict[str, Any], head: dict[str, Any], verdict: Verdict | None, said: str
) -> None:
    sides = side(cache, "base", **held), side(cache, "head", **held, **head)
    (pair,) = pair_runs(*sides, by_name=True)
    found = compare_pair(pair, *sides)
    assert found.verdict == (known(verdict, said) if verdict else None)
    assert found.remark == ("" if verdict else said)


@pytest.mark.parametrize(
    ("head", "note"),
    [
        ({"values": None}, "Outputs of 1 case were not compared: a run is of a harness that kept none"),
        ({"inputs": "y"}, "Outputs of 1 case were not compared: the two sides are called with other inputs"),
        (ANOTHER, f"The two sides define 1 case differently: its model is another program ({STOCK.name})"),
    ],
)
def test_a_note_says_what_the_sides_have_not_in_common(cache: Path, head: dict[str, Any], note: str) -> None:
    options = CompareOptions(remeasure=False, by_name=True)
    plan = plan_comparison(side(cache, "base"), side(cache, "head", **head), options)
    assert [pair.name for pair in plan.open] == [STOCK.name]
    assert note in conclude(plan, [], {}, created="").notes
