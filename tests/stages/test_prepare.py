"""The first half of the line with the real tools: a suite is held against what is on this machine."""

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
from tests.builders import FLAGS, flag_plugin, register
from tests.stages.conftest import AT_END, FILE, lay_out_suite

Prepare = Callable[..., tuple[Case, ...]]


@pytest.fixture
def prepare_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, real_toolchain: Toolchain) -> Prepare:
    """The cases of the small suite with these changes."""
    monkeypatch.chdir(tmp_path)
    register(monkeypatch, "harness.plugins", ("share", flag_plugin("share", "--iree-opt-levle=O3")))

    def prepare_with(changes: dict[str, str] | None = None, *, program: str = "module {}") -> tuple[Case, ...]:
        return prepare(lay_out_suite(changes, program=program), Selection(), (real_toolchain,)).cases

    return prepare_with


def test_a_suite_that_fits_gives_its_cases_and_a_model_is_known_by_its_bytes(
    prepare_with: Prepare, real_toolchain: Toolchain
) -> None:
    cases = prepare_with()
    assert [case.name for case in cases] == ["net/stock@cpu", "net/tiled@cpu"]
    assert {(case.toolchain, case.skip) for case in cases} == {(real_toolchain.version, None)}
    assert prepare(Path("suite.toml"), Selection()).toolchains == (real_toolchain,), "the installed one"
    renamed, changed = prepare_with({"[models.net]": "[models.network]"}), prepare_with(program="module { }")
    assert [case.id for case in cases] == [case.id for case in renamed]
    assert not {case.id for case in cases} & {case.id for case in changed}


SUITES = [path for path in sorted((Path(__file__).parents[2] / "suites").glob("*.toml")) if find_list(path) is None]


@pytest.mark.parametrize("suite", SUITES, ids=lambda file: file.stem)
def test_the_suites_of_this_project_fit(suite: Path, real_toolchain: Toolchain) -> None:
    planned = prepare(suite, Selection(), (real_toolchain,)).cases
    cases = [case for case in planned if case.peer is None and case.backend == "llvm-cpu" and "vulkan" not in case.uris]
    assert {case.skip for case in cases} == {None}
    assert {variant.name for variant in load_suite(suite).variants} == {case.variant for case in cases}


# --- what is refused ---


def of_stock(key: str, value: str) -> dict[str, str]:
    """The suite with something more in its first variant."""
    return {"[variants.stock]\n": f'[variants.stock]\n{key} = ["{value}"]\n'}


COMPILER, RUNTIME = "iree-compile RELEASE knows no flag", "iree-benchmark-module RELEASE knows no flag"
LEVEL = f'{COMPILER} --iree-opt-levle; did you mean "iree-opt-level"?'
SET, STOCK, CPU = "[variants.tiled] flagsets: [flagsets.tiling]", "[variants.stock]", "[devices.cpu]"
GPU = '\n[devices.gpu]\nuri = "metal"\nbackend = "metal-spirv"\ncompile_flags = ["--iree-metal-targt=x"]\n'


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({FILE: FLAGS.replace('tiling"]', 'tilin"]')}, f"{SET} compile: {COMPILER} --iree-opt-data-tilin;"),
        ({FILE: f'{FLAGS}run = ["--divice_allocator=x"]'}, f"{SET} run: {RUNTIME} --divice_allocator; did you mean"),
        (of_stock("flags", "--iree-opt-levle=O3"), f"{STOCK} flags: {LEVEL}"),
        (of_stock("flags", "--qqqqqqqq"), f"{STOCK} flags: {COMPILER} --qqqqqqqq; see iree-compile --help-hidden"),
        (of_stock("run_flags", "--qqqqqqqq"), f"{STOCK} run_flags: {RUNTIME} --qqqqqqqq; see iree-bench"),
        (of_stock("plugins", "share"), f"{STOCK} plugins: share: {LEVEL}"),
        ({"target-device=": "target-devise="}, f"{CPU} compile_flags: {COMPILER} --iree-hal-target-devise;"),
        ({AT_END: 'run_flags = ["--qqqqqqqq"]'}, f"{CPU} run_flags: {RUNTIME} --qqqqqqqq;"),
        ({AT_END: GPU}, f"[devices.gpu] compile_flags: {COMPILER} --iree-metal-targt;"),
        (of_stock("flags", "--iree-opt-level=\\u0000"), f"{STOCK} flags: --iree-opt-level has a zero byte; remove it"),
        (of_stock("plugins", "shere"), f"{STOCK} plugins: there is no plugin 'shere'; did you mean \"share\"?"),
        (of_stock("flags", "-o=x"), f"{STOCK} flags: --o is the harness's own to give"),
        (of_stock("run_flags", "--device_allocator=x"), f"{STOCK} run_flags: --device_allocator is not applied by "),
    ],
)
def test_what_a_suite_may_not_give_is_named_with_its_table(
    prepare_with: Prepare, real_toolchain: Toolchain, tmp_path: Path, changes: dict[str, str], sentence: str
) -> None:
    with pytest.raises(SuiteError) as caught:
        prepare_with(changes)
    assert str(caught.value).startswith(f"suite.toml: {sentence}".replace("RELEASE", real_toolchain.version))
    assert caught.value.exit_code == ExitCode.USAGE
    assert {file.name for file in tmp_path.iterdir()} == {"suite.toml", "flags.toml", "net.mlir"}


# --- several toolchains, and what is not for all of them ---


@pytest.fixture
def older(real_toolchain: Toolchain) -> Toolchain:
    """The installed toolchain under another number, whose tools say what the test has put into the memo of flags."""
    return replace(real_toolchain, version="3.1.0", compiler_sha256="0d" * 32)


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
        assert prepared.toolchains == toolchains
        assert {case.name: case.skip for case in prepared.cases if case.skip} == skipped
        assert [prepared.toolchain_of(case) for case in prepared.cases] == [*toolchains] * 2
    with pytest.raises(
        SuiteError, match=r"compile: iree-compile 3\.1\.0 knows no flag --iree-opt-data-tiling; did you"
    ):
        prepare(Path("suite.toml"), Selection(), (older,))
    compared = prepare(Path("suite.toml"), Selection(), (older,), others=(real_toolchain,))
    assert [case.skip for case in compared.cases] == [None, *skipped.values()]


OF_99 = '[variants.tiled]\nflags = ["--iree-of-99"]\ntoolchains = ">=99"\n'
OF_99_TOO = '[flagsets.tiling]\ncompile = ["--iree-of-99"]\nrun = ["--another_one"]\ntoolchains = ">=99"\n'


@pytest.mark.parametrize(
    ("changes", "what"),
    [({"[variants.tiled]\n": OF_99}, "variant tiled"), ({FILE: OF_99_TOO}, "flag set tiling")],
)
def test_what_is_for_another_release_may_have_flags_that_this_one_does_not_know(
    prepare_with: Prepare, real_toolchain: Toolchain, older: Toolchain, changes: dict[str, str], what: str
) -> None:
    prepare_with(changes)
    cases = prepare(Path("suite.toml"), Selection(), (real_toolchain, older)).cases
    assert [(case.variant, case.skip) for case in cases if case.skip] == [
        ("tiled", f"{what} is for IREE >=99, and this is {release}") for release in (real_toolchain.version, "3.1.0")
    ]
