"""Which case meets which, and what is known of two cases before anything is measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.compare.pairs import Known, Pair, Side, pair_runs, pair_within, require_whole, side_of, what_is_known
from harness.errors import ExitCode, UsageError
from harness.records.case import Case
from harness.records.run import Failure, Lost, ToolchainRecord
from tests.compare.runs import MODEL, TOOLCHAIN, a_case, a_side

STOCK, FAST = a_case("stock"), a_case("fast")
REFERENCE, OLD, NEW = (
    replace(TOOLCHAIN, version="3.11.0"),
    replace(TOOLCHAIN, version="3.12.0"),
    replace(TOOLCHAIN, version="3.13.0"),
)
CRASH = Failure(stage="compile", message="iree-compile crashed", stderr="last words")


def names(pairs: list[Pair]) -> list[tuple[str, str | None, str | None]]:
    """Name of each pair, and of its cases."""
    return [(pair.name, pair.base.name if pair.base else None, pair.head.name if pair.head else None) for pair in pairs]


def fate(base: Side, head: Side, name: str = "net/stock@cpu") -> Known | str | None:
    (pair,) = [pair for pair in pair_runs(base, head) if pair.name == name]
    return what_is_known(pair, base, head)


def verdict(base: Side, head: Side, name: str = "net/stock@cpu") -> tuple[str, str]:
    known = fate(base, head, name)
    assert isinstance(known, Known)
    return known.verdict, known.reason


# --- Peers ---


def test_peers_are_no_part_of_a_comparison_and_no_damage() -> None:
    """What another engine takes is no matter of a change of the compiler; and it knows no toolchain."""
    peer = a_case("onnxruntime", peer="onnxruntime", toolchain="")
    base, head = a_side(STOCK, FAST, peer), a_side(STOCK, FAST, peer)
    require_whole(head)
    assert [pair.name for pair in pair_runs(base, head)] == [STOCK.name, FAST.name]
    assert [pair.name for pair in pair_within(head)] == [FAST.name]


# --- Two runs ---


def test_cases_meet_by_what_they_are_and_not_by_their_names() -> None:
    renamed = replace(STOCK, name="net/default@cpu", variant="default")
    assert names(pair_runs(a_side(STOCK, FAST), a_side(FAST, renamed))) == [
        ("net/fast@cpu", "net/fast@cpu", "net/fast@cpu"),
        ("net/default@cpu", "net/stock@cpu", "net/default@cpu"),
    ]


def test_a_case_of_one_side_alone_is_a_pair_too_the_heads_first() -> None:
    pairs = pair_runs(a_side(STOCK, a_case("gone")), a_side(STOCK, a_case("more")))
    assert names(pairs) == [
        ("net/stock@cpu", "net/stock@cpu", "net/stock@cpu"),
        ("net/more@cpu", None, "net/more@cpu"),
        ("net/gone@cpu", "net/gone@cpu", None),
    ]


def test_two_variants_with_the_same_flags_meet_by_name() -> None:
    alias = replace(FAST, id=STOCK.id)
    assert names(pair_runs(a_side(STOCK, alias), a_side(alias, STOCK))) == [
        ("net/fast@cpu", "net/fast@cpu", "net/fast@cpu"),
        ("net/stock@cpu", "net/stock@cpu", "net/stock@cpu"),
    ]
    assert names(pair_runs(a_side(STOCK), a_side(alias, STOCK))) == [
        ("net/fast@cpu", None, "net/fast@cpu"),
        ("net/stock@cpu", "net/stock@cpu", "net/stock@cpu"),
    ]


def test_of_one_toolchain_a_side_the_toolchains_are_what_is_compared() -> None:
    base = a_side(replace(STOCK, toolchain="3.12.0"), toolchains=[OLD])
    head = a_side(replace(STOCK, toolchain="3.13.0"), toolchains=[NEW])
    assert names(pair_runs(base, head)) == [("net/stock@cpu", "net/stock@cpu", "net/stock@cpu")]


def test_of_several_toolchains_each_case_meets_its_own_release() -> None:
    old = replace(STOCK, toolchain="3.12.0", name="net/stock@cpu:3.12.0")
    new = replace(STOCK, toolchain="3.13.0", name="net/stock@cpu:3.13.0")
    both = a_side(old, new, toolchains=[OLD, NEW])
    assert names(pair_runs(both, both)) == [(one.name, one.name, one.name) for one in (old, new)]
    alone = a_side(replace(new, name="net/stock@cpu"), toolchains=[NEW])
    assert names(pair_runs(both, alone)) == [
        ("net/stock@cpu", "net/stock@cpu:3.13.0", "net/stock@cpu"),
        ("net/stock@cpu:3.12.0", "net/stock@cpu:3.12.0", None),
    ]


def test_of_two_nights_the_newest_releases_meet_and_the_reference_meets_itself() -> None:
    def night(newest: ToolchainRecord) -> Side:
        cases = [
            replace(STOCK, toolchain=one.version, name=f"net/stock@cpu:{one.version}") for one in (REFERENCE, newest)
        ]
        return a_side(*cases, toolchains=[REFERENCE, newest])

    assert names(pair_runs(night(OLD), night(NEW))) == [
        ("net/stock@cpu:3.11.0", "net/stock@cpu:3.11.0", "net/stock@cpu:3.11.0"),
        ("net/stock@cpu:3.13.0", "net/stock@cpu:3.12.0", "net/stock@cpu:3.13.0"),
    ]


def test_by_name_a_case_that_was_redefined_meets_itself_and_a_renamed_one_its_like() -> None:
    redefined = replace(STOCK, id="ab" * 8)
    renamed = replace(FAST, name="net/quick@cpu")
    assert names(pair_runs(a_side(STOCK, FAST), a_side(redefined, renamed), by_name=True)) == [
        (STOCK.name, STOCK.name, STOCK.name),
        (renamed.name, FAST.name, renamed.name),
    ]


def test_by_name_names_come_before_definitions() -> None:
    swapped = [replace(STOCK, id=FAST.id), replace(FAST, id=STOCK.id)]
    assert names(pair_runs(a_side(STOCK, FAST), a_side(*swapped), by_name=True)) == [
        (STOCK.name, STOCK.name, STOCK.name),
        (FAST.name, FAST.name, FAST.name),
    ]


def test_runs_with_no_case_in_common() -> None:
    with pytest.raises(UsageError) as caught:
        pair_runs(a_side(STOCK, label="one"), a_side(FAST, label="two"))
    assert str(caught.value) == (
        "one and two have no case in common; compare runs of one suite, and `harness list` shows a suite's cases with "
        "their ids"
    )
    assert caught.value.exit_code == ExitCode.USAGE


# --- One run ---


def test_within_a_run_every_variant_meets_the_baseline_of_its_group() -> None:
    gpu = [a_case(variant, device="gpu") for variant in ("stock", "fast")]
    assert names(pair_within(a_side(STOCK, FAST, a_case("tiled"), *gpu))) == [
        ("net/fast@cpu", "net/stock@cpu", "net/fast@cpu"),
        ("net/tiled@cpu", "net/stock@cpu", "net/tiled@cpu"),
        ("net/fast@gpu", "net/stock@gpu", "net/fast@gpu"),
    ]


def test_within_a_run_of_nothing_but_baselines() -> None:
    with pytest.raises(UsageError) as caught:
        pair_within(a_side(STOCK, label="results/one"))
    assert str(caught.value) == ("results/one: has no variant beside the baseline; compare it with another run")


def test_a_variant_without_a_baseline_beside_it() -> None:
    side = a_side(FAST)
    (pair,) = pair_within(side)
    assert what_is_known(pair, side, side) == Known(verdict="new", reason="net@cpu has no baseline in this run")


# --- A case that one side lacks ---


def test_a_case_that_the_other_side_never_had() -> None:
    base, head = a_side(STOCK, a_case("gone")), a_side(STOCK, a_case("more"))
    assert verdict(base, head, "net/gone@cpu") == ("missing", "the head has no such case")
    assert verdict(base, head, "net/more@cpu") == ("new", "the base has no such case")


CHANGED = replace(FAST, id="f" * 16)


@pytest.mark.parametrize(
    ("old", "new", "new_model", "new_reason", "gone_reason"),
    [
        (
            replace(FAST, compile_flags=("--a",), run_flags=("--r",)),
            replace(CHANGED, compile_flags=("--b",), run_flags=("--r",)),
            MODEL,
            "its flags differ by --b --a",
            "its flags differ by --a --b",
        ),
        (FAST, CHANGED, replace(MODEL, mlir_sha256="bb" * 32), "its model differs", "its model differs"),
        (
            FAST,
            CHANGED,
            MODEL,
            "its model's definition, device or plugins differ",
            "its model's definition, device or plugins differ",
        ),
    ],
)
def test_one_name_with_two_definitions_is_missing_and_new(
    old: Case, new: Case, new_model: object, new_reason: str, gone_reason: str
) -> None:
    base, head = a_side(STOCK, old), a_side(STOCK, new, model=new_model)  # type: ignore[arg-type]
    assert names(pair_runs(base, head))[1:] == [
        ("net/fast@cpu", None, "net/fast@cpu"),
        ("net/fast@cpu (base)", "net/fast@cpu", None),
    ]
    assert verdict(base, head, "net/fast@cpu") == (
        "new",
        f"the base's case of this name is another one: {new_reason}",
    )
    assert verdict(base, head, "net/fast@cpu (base)") == (
        "missing",
        f"the head's case of this name is another one: {gone_reason}",
    )


def test_a_skipped_case_that_the_other_side_lacks_is_nobodys_news() -> None:
    base, head = a_side(STOCK), a_side(STOCK, replace(FAST, skip="no GPU"))
    assert fate(base, head, "net/fast@cpu") == "skipped: no GPU"


# --- Skips and failures ---

SKIPPED = replace(STOCK, skip="no GPU")
LAST_WORDS = "last words"


def failing(case: Case = STOCK) -> Side:
    return a_side(case, failures={case.name: CRASH})


def expected(case: Case, message: str) -> Case:
    return replace(case, expected_failure=message)


@pytest.mark.parametrize(
    ("base", "head", "known"),
    [
        (a_side(SKIPPED), a_side(SKIPPED), "skipped: no GPU"),
        (
            a_side(STOCK),
            a_side(SKIPPED),
            Known(verdict="missing", reason="measured in the base, and skipped in the head: no GPU"),
        ),
        (a_side(SKIPPED), a_side(STOCK), Known(verdict="new", reason="skipped in the base: no GPU")),
        (
            a_side(STOCK),
            failing(),
            Known(verdict="failed", reason="fails at compile: iree-compile crashed", stderr=LAST_WORDS),
        ),
        (
            failing(),
            failing(),
            Known(
                verdict="failed",
                reason="fails at compile: iree-compile crashed (and so does the base)",
                stderr=LAST_WORDS,
            ),
        ),
        (failing(), a_side(STOCK), Known(verdict="new", reason="works, where the base failed at compile")),
        (a_side(STOCK), failing(expected(STOCK, "crashed")), "expected to fail: iree-compile crashed"),
        (
            a_side(STOCK),
            failing(expected(STOCK, "ran out of memory")),
            Known(verdict="failed", reason="fails at compile: iree-compile crashed", stderr=LAST_WORDS),
        ),
        (
            a_side(STOCK),
            a_side(STOCK, uncompiled=[STOCK.name]),
            Known(verdict="missing", reason="the head was never compiled"),
        ),
        (
            a_side(STOCK, uncompiled=[STOCK.name]),
            a_side(STOCK),
            Known(verdict="new", reason="the base was never compiled"),
        ),
    ],
)
def test_skips_failures_and_what_was_never_compiled(base: Side, head: Side, known: Known | str) -> None:
    assert fate(base, head) == known


def test_a_case_that_only_the_head_has_and_that_fails_is_no_mere_news() -> None:
    broken = a_side(STOCK, FAST, failures={FAST.name: CRASH})
    assert fate(a_side(STOCK), broken, FAST.name) == Known(
        verdict="failed",
        reason="fails at compile: iree-compile crashed (the base has no such case)",
        stderr=LAST_WORDS,
    )
    known_to_fail = a_side(STOCK, expected(FAST, "crashed"), failures={FAST.name: CRASH})
    assert fate(a_side(STOCK), known_to_fail, FAST.name) == "expected to fail: iree-compile crashed"


def test_a_case_fails_with_the_one_that_was_measured_in_its_place() -> None:
    side = a_side(STOCK, FAST, a_case("inert"), code={"net/inert@cpu": FAST.name})
    lost = Lost(case=FAST.name, failure=Failure(stage="measure", message="it crashed"), generation=1)
    side = side_of(replace(side.run, lost=(lost,)), side.label)
    fates = {pair.name: what_is_known(pair, side, side) for pair in pair_within(side)}
    assert fates["net/inert@cpu"] == fates[FAST.name] == Known(verdict="failed", reason="fails at measure: it crashed")


# --- Identity ---


def test_the_same_module_on_the_same_runtime_need_not_be_measured() -> None:
    assert verdict(a_side(STOCK), a_side(STOCK)) == ("identical", "same module bytes, same runtime")


@pytest.mark.parametrize(
    "head",
    [
        a_side(STOCK, code={STOCK.name: "other code"}),
        a_side(STOCK, toolchains=[replace(TOOLCHAIN, compiler_sha256="dd" * 32)]),
        a_side(STOCK, toolchains=[replace(TOOLCHAIN, revision="abc")]),
        a_side(replace(STOCK, run_flags=("--task_topology_max_group_count=1",))),
    ],
    ids=["other module bytes", "another build of the release", "another revision", "other run flags"],
)
def test_anything_else_has_to_be_measured(head: Side) -> None:
    assert fate(a_side(STOCK), head) is None


def test_within_a_run_an_inert_variant_is_identical() -> None:
    side = a_side(STOCK, FAST, code={FAST.name: STOCK.name})
    (pair,) = pair_within(side)
    known = what_is_known(pair, side, side)
    assert isinstance(known, Known)
    assert known.verdict == "identical"
