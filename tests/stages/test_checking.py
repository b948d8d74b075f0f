"""What `harness check` finds in a suite without compiling."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from harness.cli.suites import CheckOptions, check
from harness.errors import ExitCode, SuiteError, UsageError
from harness.progress import Silent
from harness.stages.checking import check_suite, target_backends
from harness.toolchain import Toolchain
from tests.builders import FLAGS, SUITE

LOCAL, LLVM = "--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"
PROGRAM = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"
MORE_FLAGS = f'{FLAGS}[flagsets.other]\ncompile = ["--iree-opt-level=O3"]\n'
GPU = '[devices.gpu]\nuri = "hip"\nbackend = "rocm"\ncompile_flags = ["--iree-hal-target-device=hip"]\n'

Check = Callable[..., list[tuple[str, str]]]


@pytest.fixture
def suite(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small suite, with a model that IREE takes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path_factory.getbasetemp() / "cache-of-checks"))
    Path("net.mlir").write_text(PROGRAM)
    Path("flags.toml").write_text(FLAGS)
    Path("suite.toml").write_text(SUITE)
    return Path("suite.toml")


@pytest.fixture
def findings(suite: Path, real_toolchain: Toolchain) -> Check:
    """What is found where pieces of the suite's text are replaced by others, and more is put at its end."""

    def findings(*changes: tuple[str, str], more: str = "", flags: str = FLAGS) -> list[tuple[str, str]]:
        text = SUITE
        for old, new in changes:
            assert text.count(old) == 1
            text = text.replace(old, new)
        suite.write_text(text + more)
        Path("flags.toml").write_text(flags)
        found = check_suite(suite, (real_toolchain,), Silent()).findings
        return [(finding.kind, finding.text) for finding in found]

    return findings


BACKEND = 'backend = "llvm-cpu"'
TARGET = f'compile_flags = ["{LOCAL}"]'


@pytest.mark.parametrize(
    ("changes", "more", "flags", "kind", "text"),
    [
        pytest.param(
            [(BACKEND, 'backend = "llvm-cpy"')],
            "",
            FLAGS,
            "contradiction",
            "[devices.cpu] backend: there is no backend 'llvm-cpy'; did you mean \"llvm-cpu\"?",
            id="no such backend",
        ),
        pytest.param(
            [(BACKEND, 'backend = "cuda"'), (TARGET, "")],
            "",
            FLAGS,
            "contradiction",
            "[devices.cpu] backend: local-sync runs code of llvm-cpu or vmvx or vmvx-inline, not of cuda; "
            "change uri or backend",
            id="a backend that the device does not run",
        ),
        pytest.param(
            [(BACKEND, 'backend = "vmvx"'), (TARGET, f'compile_flags = ["{LOCAL}", "{LLVM}"]')],
            "",
            FLAGS,
            "contradiction",
            "[devices.cpu] backend: is vmvx, and compile_flags choose llvm-cpu; change one of them",
            id="a backend that the flags do not choose",
        ),
        pytest.param(
            [('flagsets = ["tiling"]', f'flags = ["{LLVM.replace("llvm-cpu", "vmvx")}"]')],
            "",
            FLAGS.replace("tiling]", 'other]\nbackends = ["llvm-cpu"]'),
            "contradiction",
            "[variants.tiled] on device cpu: its flags choose vmvx, and backend is llvm-cpu; remove the flags, or give "
            "them to a device of their own",
            id="a variant that chooses another backend",
        ),
        pytest.param(
            [('flagsets = ["tiling"]', 'flags = ["--iree-opt-level=O3", "--iree-opt-level=O2"]')],
            "",
            FLAGS,
            "contradiction",
            "[variants.tiled]: gives --iree-opt-level the values O3 and O2; keep one of them",
            id="a flag with two values",
        ),
        pytest.param(
            [],
            "",
            f'{FLAGS}backends = ["llvm-cpu", "llvmcpu"]',
            "contradiction",
            "[flagsets.tiling] backends: there is no backend 'llvmcpu'; did you mean \"llvm-cpu\"?",
            id="a flag set for a backend that there is not",
        ),
        pytest.param(
            [('flagsets = ["tiling"]', "")],
            "",
            FLAGS,
            "no effect",
            "[variants.tiled] on device cpu: is compiled and run as stock is; remove one of them, or its flags",
            id="two equal variants",
        ),
        pytest.param(
            [],
            "threads = 1\n",
            FLAGS,
            "no effect",
            "[devices.cpu] threads: is for local-task and peers; remove it",
            id="threads where one thread computes",
        ),
        pytest.param(
            [],
            'run_flags = ["--task_topology_group_count=2"]\n',
            FLAGS,
            "no effect",
            "[devices.cpu]: nothing reads --task_topology_group_count=2 for llvm-cpu on local-sync; remove it",
            id="a flag of another driver",
        ),
        pytest.param(
            [('flagsets = ["tiling"]', 'flags = ["--iree-cuda-target=sm_80"]')],
            "",
            FLAGS,
            "no effect",
            "[variants.tiled] on device cpu: nothing reads --iree-cuda-target=sm_80 for llvm-cpu on local-sync; "
            "exclude */tiled@cpu in [matrix]",
            id="a variant with flags of another backend",
        ),
        pytest.param(
            [],
            '[matrix]\nexclude = ["*/tiled@*"]\n',
            FLAGS,
            "unused",
            "[variants.tiled]: [matrix] leaves no case of it",
            id="a variant without cases",
        ),
        pytest.param(
            [],
            "",
            f'{FLAGS}backends = ["cuda"]',
            "unused",
            "[variants.tiled]: all of its cases are skipped: flag set tiling is for cuda, and device cpu is llvm-cpu",
            id="a variant for no device that is here",
        ),
        pytest.param(
            [],
            f'{GPU}[matrix]\nexclude = ["*@gpu"]\n',
            FLAGS,
            "unused",
            "[devices.gpu]: [matrix] leaves no case of it",
            id="a device without cases",
        ),
        pytest.param(
            [],
            "",
            MORE_FLAGS,
            "unused",
            "flagset_files: flags.toml: no variant names other",
            id="a flag set",
        ),
        pytest.param(
            [("4] }", "5] }")],
            "",
            FLAGS,
            "failed",
            "model net: suite.toml: [models.net] inputs[0] shape: main takes 4xf32, and 5xf32 is given; correct shape; "
            "2 cases fail with it",
            id="a model that cannot be made",
        ),
    ],
)
def test_a_finding(
    findings: Check, changes: list[tuple[str, str]], more: str, flags: str, kind: str, text: str
) -> None:
    assert (kind, text) in findings(*changes, more=more, flags=flags)


def test_a_file_of_flag_sets_that_nobody_names(findings: Check) -> None:
    found = findings(('flagsets = ["tiling"]', 'flags = ["--iree-opt-level=O3"]'))
    assert found == [("unused", "flagset_files: flags.toml: no variant names a flag set of it; remove it")]


def test_nothing_is_found_in_a_good_suite_and_what_is_not_here_is_no_fault_of_it(findings: Check) -> None:
    assert findings() == []
    assert findings(more=GPU) == []


@pytest.mark.parametrize(
    ("flags", "backends"),
    [
        ((LOCAL, LLVM), ("llvm-cpu",)),
        ((LOCAL, f"{LLVM},vmvx"), ("llvm-cpu", "vmvx")),
        ((LOCAL,), ("llvm-cpu", "vmvx", "vmvx-inline")),
        (("--iree-hal-target-device=a=local[0]", "--iree-hal-target-device=b=hip", LLVM), ("llvm-cpu", "rocm")),
        (("--iree-hal-target-device=vulkan,local", LLVM), ("vulkan-spirv", "llvm-cpu")),
        (("--iree-hal-target-backends=cuda",), ("cuda",)),
        (("--iree-hal-target-device=#hal.device.target<...>",), ()),
        (("--iree-hal-target-device=abacus",), ()),
        (("--iree-opt-level=O3",), ()),
    ],
)
def test_the_backends_that_flags_choose(flags: tuple[str, ...], backends: tuple[str, ...]) -> None:
    assert target_backends(flags) == backends


# --------------------------------------------------------------------------------------------------------- the command


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        ("4] }", "4] }", ExitCode.OK),
        ("4] }", "5] }", ExitCode.CASE_FAILED),
        ('"local-sync"\nbackend = "llvm-cpu"', '"hip"\nbackend = "rocm"', ExitCode.CASE_FAILED),
        (BACKEND, 'backend = "llvm-cpy"', ExitCode.USAGE),
    ],
    ids=["right", "a model fails", "nothing would run", "a contradiction"],
)
def test_the_exit_status(suite: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, status: ExitCode) -> None:
    changed = SUITE.replace(old, new)
    suite.write_text(changed.replace("=local", "=hip") if "hip" in new else changed)
    assert check(CheckOptions(suite, format="json")) == status
    found = json.loads(capsys.readouterr().out)
    assert (found["schema_version"], found["suite"], found["cases"], found["exit_status"]) == (
        1,
        "suite.toml",
        2,
        status,
    )


def test_what_is_printed(suite: Path, capsys: pytest.CaptureFixture[str], real_toolchain: Toolchain) -> None:
    assert check(CheckOptions(suite)) == ExitCode.OK
    title = f"suite.toml: 2 cases under IREE {real_toolchain.version}\n"
    assert capsys.readouterr().out == f"{title}  nothing is wrong as far as that shows without compiling\n"
    suite.write_text(f'{SUITE}{GPU}[matrix]\nexclude = ["*/tiled@*"]\n')
    check(CheckOptions(suite))
    title, *lines = capsys.readouterr().out.splitlines()
    assert title.endswith(", 1 of them skipped here")
    assert lines[0].startswith("  skipped: 1 case: no HIP device")
    assert lines[1:] == ["  unused: [variants.tiled]: [matrix] leaves no case of it"]


def test_a_wrong_suite_is_one_sentence_and_of_a_list_the_others_are_checked(
    suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SuiteError, match=r"gone\.toml: there is no such file"):
        check(CheckOptions(Path("gone.toml")))
    Path("night.toml").write_text('name = "night"\nsuites = ["gone.toml", "suite.toml"]\n')
    assert check(CheckOptions(Path("night.toml"))) == ExitCode.USAGE
    shown = capsys.readouterr()
    assert "gone.toml: there is no such file" in shown.err
    assert shown.out.startswith("suite.toml: 2 cases under IREE ")


def test_a_failed_model_is_said_once(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite.write_text(SUITE.replace("4] }", "5] }"))
    check(CheckOptions(suite))
    shown = capsys.readouterr()
    assert f"{shown.out}{shown.err}".count("main takes 4xf32, and 5xf32 is given") == 1


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        pytest.param(
            [(BACKEND, "backnd = 1"), ("[models.net]", "[models.net]\nsize = 3")],
            ["backend is missing", "backnd is not a known key", "size is not a known key"],
            id="of form",
        ),
        pytest.param(
            [('mlir = "net.mlir"', 'mlir = "gone.mlir"'), ('flagsets = ["tiling"]', 'flagsets = ["none"]')],
            ["[variants.tiled] flagsets: there is no flag set 'none'", "[models.net] mlir: there is no file gone.mlir"],
            id="of tables",
        ),
    ],
)
def test_all_mistakes_of_a_kind_are_said_at_once(
    suite: Path, capsys: pytest.CaptureFixture[str], changes: Sequence[tuple[str, str]], sentences: Sequence[str]
) -> None:
    text = SUITE
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    suite.write_text(text)
    with pytest.raises(UsageError) as caught:
        check(CheckOptions(suite))
    assert str(caught.value) == f"suite.toml: has the {len(sentences)} errors above; correct them"
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(sentences)
    assert all(any(line.startswith("suite.toml: ") and sentence in line for line in lines) for sentence in sentences)
    Path("night.toml").write_text('name = "night"\nsuites = ["suite.toml"]\n')
    check(CheckOptions(Path("night.toml"), format="json"))
    (record,) = json.loads(capsys.readouterr().out)["suites"]
    assert record["errors"] == lines
