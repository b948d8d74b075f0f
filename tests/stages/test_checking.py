"""What `harness check` finds in a suite without compiling."""

import json
from pathlib import Path

import pytest

from harness.cli.run import CheckOptions, check
from harness.errors import ExitCode, SuiteError
from harness.progress import Progress
from harness.stages.checking import check_suite, target_backends
from harness.toolchain import Toolchain
from tests.builders import FLAGS
from tests.stages.conftest import AT_END, FILE, lay_out_suite

LOCAL, LLVM = "--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"
PROGRAM = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"
GPU = '[devices.gpu]\nuri = "hip"\nbackend = "rocm"\ncompile_flags = ["--iree-hal-target-device=hip"]\n'


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current one, in which suites are written; the cache is that of all checks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path_factory.getbasetemp() / "cache-of-checks"))
    return tmp_path


def findings(toolchain: Toolchain, changes: dict[str, str]) -> list[tuple[str, str]]:
    """What is found in the suite with these changes, whose model IREE takes."""
    found = check_suite(lay_out_suite(changes, program=PROGRAM), (toolchain,), Progress()).findings
    return [(finding.kind, finding.text) for finding in found]


BACKEND, SETS = 'backend = "llvm-cpu"', 'flagsets = ["tiling"]'
VMVX = LLVM.replace("llvm-cpu", "vmvx")
TARGET = f'compile_flags = ["{LOCAL}"]'
OF_OTHERS = f'flags = ["{VMVX}"]'
CHOSEN = f'compile_flags = ["{LOCAL}", "{LLVM}"]'
CPU, TILED = "[devices.cpu]", "[variants.tiled]"


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({BACKEND: 'backend = "llvm"'}, "contradiction", f"{CPU} backend: there is no backend 'llvm'; did you"),
        ({BACKEND: 'backend = "cuda"', TARGET: ""}, "contradiction", f"{CPU} backend: local-sync runs code of llvm-c"),
        ({BACKEND: 'backend = "vmvx"', TARGET: CHOSEN}, "contradiction", "is vmvx, and compile_flags choose llvm-cpu;"),
        ({SETS: OF_OTHERS}, "contradiction", f"{TILED} on device cpu: its flags choose vmvx, and backend is llvm-cpu"),
        ({FILE: f'{FLAGS}backends = ["llvm"]'}, "contradiction", "[flagsets.tiling] backends: there is no backend 'l"),
        ({SETS: ""}, "no effect", f"{TILED} on device cpu: is compiled and run as stock is; remove one of them"),
        ({AT_END: "threads = 1\n"}, "no effect", f"{CPU} threads: is for local-task and peers; remove it"),
        ({AT_END: '[matrix]\nexclude = ["*/tiled@*"]\n'}, "unused", f"{TILED}: [matrix] leaves no case of it"),
        ({FILE: f'{FLAGS}backends = ["cuda"]'}, "unused", f"{TILED}: all of its cases are skipped: flag set tiling "),
        ({"4] }": "5] }"}, "failed", "main takes 4xf32, and 5xf32 is given; correct it; 2 cases fail with it"),
    ],
)
def test_a_finding(folder: Path, real_toolchain: Toolchain, changes: dict[str, str], kind: str, words: str) -> None:
    assert [text for found, text in findings(real_toolchain, changes) if found == kind and words in text]


def test_nothing_is_found_in_a_good_suite_and_what_is_not_here_is_no_fault_of_it(
    folder: Path, real_toolchain: Toolchain
) -> None:
    assert findings(real_toolchain, {}) == findings(real_toolchain, {AT_END: GPU}) == []


def test_the_backends_that_flags_choose() -> None:
    for flags, backends in (
        ((LOCAL, f"{LLVM},vmvx"), ("llvm-cpu", "vmvx")),
        ((LOCAL,), ("llvm-cpu", "vmvx", "vmvx-inline")),
        (("--iree-hal-target-device=a=local[0]", "--iree-hal-target-device=b=hip", LLVM), ("llvm-cpu", "rocm")),
        (("--iree-hal-target-device=vulkan,local", LLVM), ("vulkan-spirv", "llvm-cpu")),
        (("--iree-hal-target-backends=cuda",), ("cuda",)),
        (("--iree-hal-target-device=#hal.device.target<...>",), ()),
        (("--iree-hal-target-device=abacus",), ()),
    ):
        assert target_backends(flags) == backends


# --- the command ---


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, ExitCode.OK),
        ({"4] }": "5] }"}, ExitCode.CASE_FAILED),
        ({'"local-sync"': '"hip"', BACKEND: 'backend = "rocm"', "=local": "=hip"}, ExitCode.CASE_FAILED),
        ({BACKEND: 'backend = "llvm-cpy"'}, ExitCode.USAGE),
    ],
    ids=["right", "a model fails", "nothing would run", "a contradiction"],
)
def test_the_exit_status(
    folder: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, str], status: ExitCode
) -> None:
    suite = lay_out_suite(changes, program=PROGRAM)
    assert check(CheckOptions(suite, format="json")) == status
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert (found["schema_version"], found["suite"], found["cases"], found["exit_status"]) == (1, str(suite), 2, status)
    assert f"{shown.out}{shown.err}".count("main takes 4xf32, and 5xf32 is given") == ("4] }" in changes), "once"


def test_what_is_printed(folder: Path, capsys: pytest.CaptureFixture[str], real_toolchain: Toolchain) -> None:
    suite = lay_out_suite(program=PROGRAM)
    assert check(CheckOptions(suite)) == ExitCode.OK
    title = f"suite.toml: 2 cases under IREE {real_toolchain.version}\n"
    assert capsys.readouterr().out == f"{title}  nothing is wrong as far as that shows without compiling\n"
    lay_out_suite({AT_END: f'{GPU}[matrix]\nexclude = ["*/tiled@*"]\n'}, program=PROGRAM)
    check(CheckOptions(suite))
    title, *lines = capsys.readouterr().out.splitlines()
    assert title.endswith(", 1 of them skipped here")
    assert lines[0].startswith("  skipped: 1 case: no HIP device")
    assert lines[1:] == ["  unused: [variants.tiled]: [matrix] leaves no case of it"]


def test_a_wrong_suite_is_one_sentence_and_of_a_list_the_others_are_checked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out_suite(program=PROGRAM)
    with pytest.raises(SuiteError, match=r"gone\.toml: there is no such file"):
        check(CheckOptions(Path("gone.toml")))
    Path("night.toml").write_text('name = "night"\nsuites = ["gone.toml", "suite.toml"]\n')
    assert check(CheckOptions(Path("night.toml"))) == ExitCode.USAGE
    shown = capsys.readouterr()
    assert "gone.toml: there is no such file" in shown.err
    assert shown.out.startswith("suite.toml: 2 cases under IREE ")
