"""Flags as data: when two lists mean the same, which combinations are traps, and which a suite may not give."""

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import SuiteError
from harness.process import Limits, run
from harness.suite.flags import find_trap, is_on, normalised, refusal
from harness.suite.load import FlagSet
from harness.toolchain import Toolchain
from harness.toolchain.tools import flag_name
from tests.builders import a_device, a_suite, a_variant
from tests.suite.conftest import names, plan

FOUND = sorted((Path(__file__).parents[2] / "scripts/traced-flags").glob("*.tsv"))


def test_whether_a_switch_is_on() -> None:
    assert all(map(is_on, ("--a", "-a", "--a=true", "--a=TRUE", "--a=1", "--a=on")))
    assert not any(map(is_on, ("--a=false", "--a=0", "--a=off", "--a=")))


FLAG = st.from_regex(r"--?(a|b|iree-opt-level)(|=|=true|=false|=x|=x=y)", fullmatch=True)


@given(st.lists(FLAG, max_size=5))
def test_the_normal_form_is_sorted_but_for_the_order_of_equal_flags(group: list[str]) -> None:
    assert normalised(["-b=2", "--c=true", "--d=y", "--d=false", "--a"]) == (
        "--a",
        "--b=2",
        "--c",
        "--d=y",
        "--d=false",
    )
    assert normalised(normalised(group)) == normalised(group)
    for name in {flag_name(flag) for flag in group}:
        same = [flag for flag in group if flag_name(flag) == name]
        assert tuple(flag for flag in normalised(group) if flag_name(flag) == name) == normalised(same)


# --- What a suite may give ---

PATH = "has a path in its value"
OUTSIDE = "writes outside the compiler's working folder"
DUMP = "--iree-hal-dump-executable-files-to"
PASSES = "--iree-preprocessing-pass-pipeline=builtin.module"
SPEC = f"{PASSES}(iree-preprocessing-apply-pdl-patterns{{patterns-file=%s}})"


COMPILE_FLAGS: list[tuple[str, str | None]] = [
    ("--iree-load-plugin=x.so", "loads code"),
    ("-iree-hal-substitute-executable-object=a=b.o", "loads code"),
    ("--iree-hal-preprocess-executables-with=sh x", "runs a program"),
    (f"{PASSES}(iree-hal-preprocess-executables-with-tool{{command=x}})", "runs a program"),
    (f"{PASSES}(gpu-module-to-binary{{toolkit=x}})", "runs a program"),
    ("--iree-scheduling-dump-statistics-file=x.json", "is the harness's own"),
    # Numbers, words and lists of them, of any flag; so also of flags that a later release brings.
    ("--iree-hal-target-device=dev_b=local[0],local[1]", None),
    (f"{PASSES}(util.func(canonicalize{{max-iterations=3}}))", None),
    ("--a-flag-of-tomorrow=-1.5e3", None),
    # A path, of flags that only read.
    ("--iree-parameter-import=scope=/home/me/x.irpa", None),
    (SPEC % "/home/me/x.mlir", None),
    (SPEC % "/home/me/x.mlir other=/etc/x", PATH),
    # A path below the working folder, of flags that dump.
    (f"{DUMP}=dumps/here", None),
    ("--iree-parameter-splat=scope=x.irpa", None),
    *((f"{DUMP}={path}", OUTSIDE) for path in ("/home/me/dumps", "a/../../dumps", "..", "~/dumps", "C:\\dumps")),
    ("--iree-parameter-splat=scope=/home/me/x.irpa", OUTSIDE),
    # The model is a link to the user's file.
    ("--iree-parameter-splat=model.mlir", "names the harness's own copy"),
    ("--a-flag-of-tomorrow=./model.mlir", "names the harness's own copy"),
    # A path, of any other flag.
    *((f"--a-flag-of-tomorrow={path}", PATH) for path in ("/etc/passwd", "here/x", "a=..", "~root")),
    (f"{PASSES}(snapshot-op-locations{{filename=/etc/x}})", PATH),
]
RUN_FLAGS: list[tuple[str, str | None]] = [
    ("--task_topology_cpu_ids=0,2", None),
    ("--task_topology_snapshot=/home/me/x", PATH),
    ("--device=local-sync", "is the harness's own"),
    ("--flagfile=x", "reads further flags"),
    ("--executable_plugin=x.so", "loads code"),
    ("--device_profiling_output=module.vmfb", "writes a file"),
]


@pytest.mark.parametrize(("flags", "at_run"), [(COMPILE_FLAGS, False), (RUN_FLAGS, True)])
def test_flags_by_the_kind_of_their_value(flags: list[tuple[str, str | None]], at_run: bool) -> None:
    for flag, reason in flags:
        assert (refusal(flag, at_run=at_run) or "None").startswith(str(reason)), flag


@pytest.mark.parametrize("path", FOUND, ids=lambda path: str(path.stem))
def test_what_was_found_to_run_load_or_write_is_no_suites_to_give(path: Path) -> None:
    rows = [line.split("\t") for line in path.read_text().splitlines() if not line.startswith("#")]
    harmful = [(tool, flag) for tool, flag, did, _ in rows if {"runs", "loads", "writes"} & set(did.split("+"))]
    assert len(harmful) > 20
    for tool, flag in harmful:
        for value in ("/home/me/x", "net=/home/me/x.irpa", "../x"):
            assert refusal(f"{flag}={value}", at_run=tool != "iree-compile") is not None, flag


# --- Traps ---

OPT = "--iree-opt-data-tiling"
CREATION = "--iree-dispatch-creation-data-tiling"
GLOBAL = "--iree-global-opt-data-tiling"
EARLY = "--iree-global-opt-enable-early-materialization=true"
LATE = "--iree-global-opt-enable-early-materialization=false"

# Flags in a trap, the flags that do nothing there, and what is said; found by iree-compile 3.13.0 on a matmul.
TRAPS = [
    ((OPT, GLOBAL), (OPT, GLOBAL), "cancel each other, so that nothing is data-tiled and no message says so; keep"),
    ((CREATION, GLOBAL), (CREATION,), "are two paths of which the second wins without a message; keep one"),
    ((OPT, LATE), (LATE,), f"has no effect: only the global-opt path reads it; add {GLOBAL} or remove it"),
]
NO_TRAPS = [(OPT,), (CREATION, EARLY), (GLOBAL, LATE), (OPT, CREATION), (f"{OPT}=false", GLOBAL)]
MATMUL = """
func.func @main(%a: tensor<64x128xf32>, %b: tensor<128x64xf32>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = linalg.matmul ins(%a, %b : tensor<64x128xf32>, tensor<128x64xf32>)
                     outs(%c : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %d : tensor<64x64xf32>
}
"""


def test_traps_are_what_the_compiler_does(real_toolchain: Toolchain, tmp_path: Path) -> None:
    if real_toolchain.version != "3.13.0":
        pytest.skip("the traps are those of IREE 3.13.0")
    (tmp_path / "matmul.mlir").write_text(MATMUL)
    target = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu")

    @cache
    def compiled(*flags: str) -> str:
        command = [str(real_toolchain.iree_compile), "matmul.mlir", "--compile-to=flow", *target, *flags]
        finished = run(command, cwd=tmp_path, limits=Limits(seconds=60))
        assert finished.ok, finished.stderr
        assert not finished.stderr, "it says a word after all"
        return finished.stdout

    for flags, idle, _ in TRAPS:
        assert compiled(*flags) == compiled(*(flag for flag in flags if flag not in idle))
    for harmless in NO_TRAPS:
        assert compiled(*harmless) != compiled()


@pytest.mark.parametrize(("flags", "idle", "sentence"), TRAPS)
def test_a_suite_with_a_trap_is_refused_whoever_gives_the_flags(
    flags: tuple[str, str], idle: tuple[str, ...], sentence: str
) -> None:
    by_set = a_variant("tiled", flags[1], flag_sets=(FlagSet(name="set", compile=flags[:1]),))
    culprits = idle if sentence.startswith("has") else flags
    for suite in (
        a_suite(a_variant("stock"), a_variant("tiled", *flags[::-1])),
        a_suite(a_variant("stock"), by_set),
        a_suite(a_variant("tiled", flags[1]), devices=(a_device(compile_flags=flags[:1]),)),
    ):
        with pytest.raises(SuiteError) as caught:
            plan(suite)
        assert str(caught.value).startswith(
            f"suite.toml: [variants.tiled] on device cpu: {' and '.join(culprits)} {sentence}"
        )


def test_what_is_no_trap() -> None:
    assert [find_trap(flags) for flags in NO_TRAPS] == [None] * len(NO_TRAPS)
    trap = find_trap(("--iree-opt-level=O3", f"{GLOBAL}=true", "-iree-opt-data-tiling"))
    assert trap is not None
    assert trap[1] == ("-iree-opt-data-tiling", f"{GLOBAL}=true"), "flags as they were given"
    packed = a_device("packed", compile_flags=(GLOBAL,))
    suite = a_suite(a_variant("stock"), a_variant("tiled", OPT), devices=(packed,), exclude=("*/tiled@packed",))
    assert names(plan(suite)) == ["net/stock@packed"]
