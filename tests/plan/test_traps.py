"""Flags that iree-compile takes without a word and that then do not do what they say."""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path

import pytest

from harness.errors import SuiteError
from harness.process import Limits, run
from harness.suite.flags import find_trap
from harness.suite.load import FlagSet
from harness.toolchain import Toolchain
from tests.plan.conftest import a_device, a_suite, a_variant, names, plan

OPT = "--iree-opt-data-tiling"
CREATION = "--iree-dispatch-creation-data-tiling"
GLOBAL = "--iree-global-opt-data-tiling"
EARLY = "--iree-global-opt-enable-early-materialization=true"
LATE = "--iree-global-opt-enable-early-materialization=false"

# What iree-compile 3.13.0 makes of a matmul with each combination of the three switches (rows) and of the fourth flag
# (columns). A flag that repeats its default is not worth an error, so `--...early-materialization=true` never is one.
CANCEL, SECOND_WINS, NO_EFFECT = "cancel each other", "of which the second wins", "has no effect"
TABLE = {
    #                         not given    early        late
    ():                      (None,        None,        NO_EFFECT),
    (OPT,):                  (None,        None,        NO_EFFECT),
    (CREATION,):             (None,        None,        NO_EFFECT),
    (GLOBAL,):               (None,        None,        None),
    (OPT, CREATION):         (None,        None,        NO_EFFECT),
    (OPT, GLOBAL):           (CANCEL,      CANCEL,      CANCEL),
    (CREATION, GLOBAL):      (SECOND_WINS, SECOND_WINS, SECOND_WINS),
    (OPT, CREATION, GLOBAL): (CANCEL,      CANCEL,      CANCEL),
}  # fmt: skip
COMBINATIONS = [
    ((*switches, *fourth), effect)
    for switches, effects in TABLE.items()
    for fourth, effect in zip(((), (EARLY,), (LATE,)), effects, strict=True)
]


def test_the_table_is_complete() -> None:
    switches = {
        tuple(flag for flag, on in zip((OPT, CREATION, GLOBAL), states, strict=True) if on)
        for states in product((0, 1), repeat=3)
    }
    assert switches == TABLE.keys()


MATMUL = """
func.func @main(%a: tensor<64x128xf32>, %b: tensor<128x64xf32>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = linalg.matmul ins(%a, %b : tensor<64x128xf32>, tensor<128x64xf32>)
                     outs(%c : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %d : tensor<64x64xf32>
}
"""


def test_the_table_is_what_the_compiler_does(real_toolchain: Toolchain, tmp_path: Path) -> None:
    if real_toolchain.version != "3.13.0":
        pytest.skip("the table is of IREE 3.13.0")
    (tmp_path / "matmul.mlir").write_text(MATMUL)
    target = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu")

    @cache
    def compiled(*flags: str) -> str:
        command = [str(real_toolchain.iree_compile), "matmul.mlir", "--compile-to=flow", *target, *flags]
        finished = run(command, cwd=tmp_path, limits=Limits(seconds=60))
        assert finished.ok, finished.stderr
        assert not finished.stderr, "it says a word after all"
        return finished.stdout

    for flags, effect in COMBINATIONS:
        if effect == CANCEL:
            assert compiled(*flags) == compiled()
        elif effect == SECOND_WINS:
            assert compiled(*flags) == compiled(*(flag for flag in flags if flag != CREATION))
        elif effect == NO_EFFECT:
            assert compiled(*flags) == compiled(*(flag for flag in flags if flag != LATE))
        elif flags not in ((), (EARLY,)):
            assert compiled(*flags) != compiled()


@pytest.mark.parametrize(
    ("flags", "effect"), COMBINATIONS, ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
@pytest.mark.parametrize("reverse", [False, True], ids=["", "in reverse"])
def test_every_combination_of_the_data_tiling_flags(flags: tuple[str, ...], effect: str | None, reverse: bool) -> None:
    trap = find_trap(flags[::-1] if reverse else flags)
    if effect is None:
        assert trap is None
    else:
        assert trap is not None
        assert effect in trap[0].effect


def test_a_flag_that_is_switched_off_is_no_trap() -> None:
    assert find_trap((f"{OPT}=false", GLOBAL)) is None
    assert find_trap((OPT, f"{GLOBAL}=false")) is None


def test_a_trap_names_the_flags_as_they_were_given() -> None:
    trap = find_trap(("--iree-opt-level=O3", f"{GLOBAL}=true", "-iree-opt-data-tiling"))
    assert trap is not None
    assert trap[1] == ("-iree-opt-data-tiling", f"{GLOBAL}=true")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (
            (OPT, GLOBAL),
            "--iree-opt-data-tiling and --iree-global-opt-data-tiling cancel each other, so that nothing is data-tiled "
            "and no message says so; keep one of the two",
        ),
        (
            (CREATION, GLOBAL),
            "--iree-dispatch-creation-data-tiling and --iree-global-opt-data-tiling are two paths of which the second "
            "wins without a message; keep one of the two",
        ),
        (
            (OPT, LATE),
            "--iree-global-opt-enable-early-materialization=false has no effect: only the global-opt path reads it; "
            "add --iree-global-opt-data-tiling or remove it",
        ),
    ],
)
def test_a_suite_with_a_trap_is_refused(flags: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(SuiteError) as caught:
        plan(a_suite(a_variant("stock"), a_variant("tiled", *flags)))
    assert str(caught.value) == f"suite.toml: [variants.tiled] on device cpu: {sentence}"


def test_it_does_not_matter_who_gives_the_flags() -> None:
    flag_sets = (FlagSet(name="tiling", compile=(OPT,)),)
    with pytest.raises(SuiteError, match=r"\[variants.tiled\] on device cpu: .* cancel each other"):
        plan(a_suite(a_variant("tiled", flag_sets=flag_sets), devices=(a_device(compile_flags=(GLOBAL,)),)))


def test_a_variant_may_switch_off_what_its_device_switches_on() -> None:
    devices = (a_device(compile_flags=(GLOBAL,)),)
    assert names(plan(a_suite(a_variant("tiled", OPT, f"{GLOBAL}=false"), devices=devices))) == ["net/tiled@cpu"]


def test_a_combination_that_is_excluded_is_no_trap() -> None:
    devices = (a_device("plain"), a_device("packed", compile_flags=(GLOBAL,)))
    suite = a_suite(a_variant("stock"), a_variant("tiled", OPT), devices=devices, exclude=("*/tiled@packed",))
    assert names(plan(suite)) == ["net/stock@plain", "net/tiled@plain", "net/stock@packed"]
