"""The first half of the line with the real tools: a suite is held against what is on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import ExitCode, SuiteError
from harness.records.case import Case
from harness.stages import prepare as room
from harness.stages.prepare import prepare
from harness.suite.cases import Selection
from harness.suite.load import find_list, load_suite
from harness.toolchain import Toolchain, compiler_flags
from tests.builders import FLAGS, SUITE, flag_plugin, register

Prepare = Callable[..., tuple[Case, ...]]


@pytest.fixture
def prepare_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, real_toolchain: Toolchain) -> Prepare:
    """The cases of the small suite with one piece of its text replaced by another, or with more at its end."""
    monkeypatch.chdir(tmp_path)
    Path("net.mlir").write_text("module {}")

    def prepare_with(old: str = "", new: str = "", *, flags: str = FLAGS) -> tuple[Case, ...]:
        assert SUITE.count(old) == 1 or not old
        Path("suite.toml").write_text(SUITE.replace(old, new) if old else SUITE + new)
        Path("flags.toml").write_text(flags)
        return prepare(Path("suite.toml"), Selection(), (real_toolchain,)).cases

    return prepare_with


@pytest.fixture
def refusal(prepare_with: Prepare, tmp_path: Path) -> Callable[..., str]:
    """The sentence with which that suite is refused."""

    def refusal(*arguments: str, flags: str = FLAGS) -> str:
        with pytest.raises(SuiteError) as caught:
            prepare_with(*arguments, flags=flags)
        assert caught.value.exit_code == ExitCode.USAGE
        assert {file.name for file in tmp_path.iterdir()} == {"suite.toml", "flags.toml", "net.mlir"}
        return str(caught.value)

    return refusal


Refusal = Callable[..., str]


# ------------------------------------------------------------------------------------------------------ what is right


def test_a_suite_that_fits_gives_its_cases(prepare_with: Prepare, real_toolchain: Toolchain) -> None:
    cases = prepare_with()
    assert [case.name for case in cases] == ["net/stock@cpu", "net/tiled@cpu"]
    assert {case.toolchain for case in cases} == {real_toolchain.version}
    assert {case.skip for case in cases} == {None}
    assert prepare(Path("suite.toml"), Selection()).toolchains == (real_toolchain,), "the installed one"


def test_a_model_is_known_by_its_bytes_not_by_its_name(prepare_with: Prepare) -> None:
    first = prepare_with()
    renamed = prepare_with("[models.net]", "[models.network]")
    Path("net.mlir").write_text("module { }")
    changed = prepare_with()
    assert [case.id for case in first] == [case.id for case in renamed]
    assert not {case.id for case in first} & {case.id for case in changed}


SUITES = [path for path in sorted((Path(__file__).parents[2] / "suites").glob("*.toml")) if find_list(path) is None]


@pytest.mark.parametrize("suite", SUITES, ids=lambda file: file.stem)
def test_the_suites_of_this_project_fit(suite: Path, real_toolchain: Toolchain) -> None:
    planned = prepare(suite, Selection(), (real_toolchain,)).cases
    cases = [case for case in planned if case.peer is None and case.backend == "llvm-cpu" and "vulkan" not in case.uris]
    assert {case.skip for case in cases} == {None}
    assert {variant.name for variant in load_suite(suite).suite.variants} == {case.variant for case in cases}


# -------------------------------------------------------------------------------------------------------------- flags


OWN_LEVEL = '[variants.stock]\nflags = ["--iree-opt-levle=O3"]\n'
QS = '[variants.stock]\nflags = ["--qqqqqqqq"]\n'
PLUGIN_LEVEL = '[variants.stock]\nplugins = ["share"]\n'
OWN_ALLOCATOR = '[variants.stock]\nrun_flags = ["--divice_allocator=x"]\n'
TILIN = FLAGS.replace('tiling"]', 'tilin"]')
RUN_SET = f'{FLAGS}run = ["--divice_allocator=x"]'
LEVEL, ALLOCATOR = '"iree-opt-level"', '"device_allocator"'
SET = "[variants.tiled] flagsets: [flagsets.tiling]"


@pytest.mark.parametrize(
    ("old", "new", "flags", "where", "flag", "alike"),
    [
        ("", "", TILIN, f"{SET} compile", "iree-opt-data-tilin", '"iree-opt-data-tiling"'),
        ("", "", RUN_SET, f"{SET} run", "divice_allocator", ALLOCATOR),
        ("[variants.stock]\n", OWN_LEVEL, FLAGS, "[variants.stock] flags", "iree-opt-levle", LEVEL),
        ("[variants.stock]\n", OWN_ALLOCATOR, FLAGS, "[variants.stock] run_flags", "divice_allocator", ALLOCATOR),
        ("[variants.stock]\n", PLUGIN_LEVEL, FLAGS, "[variants.stock] plugins: share", "iree-opt-levle", LEVEL),
        (
            "target-device=",
            "target-devise=",
            FLAGS,
            "[devices.cpu] compile_flags",
            "iree-hal-target-devise",
            '"iree-hal-target-device"',
        ),
        ("", 'run_flags = ["--divice_allocator=x"]', FLAGS, "[devices.cpu] run_flags", "divice_allocator", ALLOCATOR),
        ("", 'run_flags = ["--qqqqqqqq"]', FLAGS, "[devices.cpu] run_flags", "qqqqqqqq", ""),
        ("[variants.stock]\n", QS, FLAGS, "[variants.stock] flags", "qqqqqqqq", ""),
    ],
)
def test_an_unknown_flag_is_named_with_who_gives_it(
    refusal: Refusal,
    real_toolchain: Toolchain,
    monkeypatch: pytest.MonkeyPatch,
    old: str,
    new: str,
    flags: str,
    where: str,
    flag: str,
    alike: str,
) -> None:
    register(monkeypatch, "harness.plugins", ("share", flag_plugin("share", "--iree-opt-levle=O3")))
    at_run = "run" in where
    tool = "iree-benchmark-module" if at_run else "iree-compile"
    hint = f"did you mean {alike}?" if alike else f"see {tool} {'--help' if at_run else '--help-hidden'}"
    assert refusal(old, new, flags=flags) == (
        f"suite.toml: {where}: {tool} {real_toolchain.version} knows no flag --{flag}; {hint}"
    )


def test_a_flag_set_for_another_release_may_hold_flags_that_this_one_does_not_know(prepare_with: Prepare) -> None:
    flags = '[flagsets.tiling]\ncompile = ["--iree-a-flag-to-come"]\nrun = ["--another_one"]\ntoolchains = ">=99"\n'
    stock, tiled = prepare_with(flags=flags)
    assert stock.skip is None
    assert tiled.skip == f"flag set tiling is for IREE >=99, and this is {stock.toolchain}"


def test_flags_for_a_device_that_is_not_there_are_checked_all_the_same(refusal: Refusal) -> None:
    gpu = '\n[devices.gpu]\nuri = "metal"\nbackend = "metal-spirv"\ncompile_flags = ["--iree-metal-targt=x"]\n'
    sentence = refusal("", gpu)
    assert sentence.startswith("suite.toml: [devices.gpu] compile_flags: iree-compile ")
    assert "knows no flag --iree-metal-targt;" in sentence


# ------------------------------------------------------------------------------------------------- several toolchains


@pytest.fixture
def older(real_toolchain: Toolchain) -> Toolchain:
    """The installed toolchain under another number, whose tools say what the test has put into the memo of flags."""
    return replace(real_toolchain, version="3.1.0", compiler_sha256="0d" * 32)


def test_a_suite_is_planned_for_each_toolchain(
    prepare_with: Prepare, real_toolchain: Toolchain, older: Toolchain
) -> None:
    prepare_with()
    prepared = prepare(Path("suite.toml"), Selection(), (older, real_toolchain))
    assert [case.name for case in prepared.cases] == [
        "net/stock@cpu:3.1.0",
        f"net/stock@cpu:{real_toolchain.version}",
        "net/tiled@cpu:3.1.0",
        f"net/tiled@cpu:{real_toolchain.version}",
    ]
    assert prepared.toolchain == older
    assert [prepared.toolchain_of(case) for case in prepared.cases] == [older, real_toolchain] * 2
    assert prepared.devices == {"cpu": "this CPU, on the thread that calls"}


def test_a_flag_that_one_of_them_does_not_know_skips_its_cases(
    prepare_with: Prepare, real_toolchain: Toolchain, older: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_with()
    names = compiler_flags(real_toolchain)
    fewer = names - {"iree-opt-data-tiling"}
    monkeypatch.setattr(room, "compiler_flags", lambda tools: fewer if tools == older else names)
    skipped = {"net/tiled@cpu:3.1.0": "iree-compile 3.1.0 knows no flag --iree-opt-data-tiling"}
    for toolchains in ((real_toolchain, older), (older, real_toolchain)):
        prepared = prepare(Path("suite.toml"), Selection(), toolchains)
        assert {case.name: case.skip for case in prepared.cases if case.skip} == skipped
    with pytest.raises(
        SuiteError, match=r"compile: iree-compile 3\.1\.0 knows no flag --iree-opt-data-tiling; did you"
    ):
        prepare(Path("suite.toml"), Selection(), (older,))
    compared = prepare(Path("suite.toml"), Selection(), (older,), others=(real_toolchain,))
    assert [case.skip for case in compared.cases] == [None, *skipped.values()]
    for_newer = "flag set tiling is for IREE >=3.2, and this is 3.1.0"
    prepare_with("", "", flags=FLAGS + 'toolchains = ">=3.2"\n')
    prepared = prepare(Path("suite.toml"), Selection(), (real_toolchain, older))
    assert {case.name: case.skip for case in prepared.cases if case.skip} == {"net/tiled@cpu:3.1.0": for_newer}


def test_a_flag_with_a_zero_byte_is_refused(refusal: Refusal) -> None:
    assert refusal("[variants.stock]\n", '[variants.stock]\nflags = ["--iree-opt-level=\\u0000"]\n') == (
        "suite.toml: [variants.stock] flags: --iree-opt-level has a zero byte; remove it"
    )


def test_a_variant_may_be_for_some_releases(prepare_with: Prepare, real_toolchain: Toolchain, older: Toolchain) -> None:
    prepare_with("[variants.tiled]\n", '[variants.tiled]\nflags = ["--iree-of-99"]\ntoolchains = ">=99"\n')
    cases = prepare(Path("suite.toml"), Selection(), (real_toolchain, older)).cases
    assert [case.skip for case in cases if case.variant == "tiled"] == [
        f"variant tiled is for IREE >=99, and this is {release}" for release in (real_toolchain.version, "3.1.0")
    ]


# ----------------------------------------------------------------------------------------------- plugins and builders


def test_a_plugin_adds_its_flags_last(prepare_with: Prepare, monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, "harness.plugins", ("share", flag_plugin("share", "--iree-opt-level=O3")))
    stock, _ = prepare_with(
        "[variants.stock]\n", '[variants.stock]\nplugins = ["share"]\nflags = ["--iree-opt-level=O1"]\n'
    )
    assert stock.compile_flags == ("--iree-hal-target-device=local", "--iree-opt-level=O3")
    assert stock.plugins == ("share",)


def test_a_plugin_that_is_none(refusal: Refusal) -> None:
    found = refusal("[variants.stock]\n", '[variants.stock]\nplugins = ["tunde"]\n')
    assert found == "suite.toml: [variants.stock] plugins: there is no plugin 'tunde'; did you mean \"tuned\"?"


# ------------------------------------------------------------------------------------------------------------ devices


def skip_on(uri: str, prepare_with: Prepare) -> str | None:
    cases = prepare_with("", f'\n[devices.other]\nuri = "{uri}"\nbackend = "other"\n')
    (skip,) = {case.skip for case in cases if case.device == "other"}
    assert {case.skip for case in cases if case.device == "cpu"} == {None}
    return skip


def test_a_driver_without_a_device_skips_its_cases(prepare_with: Prepare, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):  # newer and older loaders
        monkeypatch.setenv(variable, "no-driver.json")
    assert (skip_on("vulkan", prepare_with) or "").startswith("no Vulkan device; install ")


def test_a_driver_of_iree_that_this_runtime_was_built_without(prepare_with: Prepare) -> None:
    assert skip_on("metal", prepare_with) == (
        "this IREE was built without its metal driver; use a toolchain that has it"
    )


@pytest.mark.parametrize(
    ("key", "flag", "why"),
    [
        ("run_flags", "--device=local-task", "is the harness's own to give"),
        ("run_flags", "--help", "makes the tool print and exit"),
        ("run_flags", "--device_allocator=caching", "is not applied by iree.runtime"),
        ("run_flags", "--executable_plugin=x.so", "loads code, which only an installed plugin may"),
        ("flags", "-o=elsewhere", "is the harness's own to give"),
    ],
)
def test_flags_that_a_suite_may_not_give(refusal: Refusal, key: str, flag: str, why: str) -> None:
    sentence = refusal("[variants.stock]", f'[variants.stock]\n{key} = ["{flag}"]')
    assert sentence.startswith(f"suite.toml: [variants.stock] {key}: {'--' + flag.lstrip('-').split('=')[0]} {why}")
