"""What one case's IR is at phases of the real compiler: which phases, which case, and what can be wrong."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from harness.compare import sides as compare_sides
from harness.errors import CaseError, ExitCode, HarnessError, RunError, ToolchainError, UsageError
from harness.ir.counts import Inspected
from harness.ir.differences import ProgramParts, read_parts
from harness.ir.dump import UnreadPhase
from harness.progress import Progress
from harness.records.run import Build, Failure, ToolchainRecord
from harness.stages.ir import TELLING_PHASES, NamedCase, compare_cases, compile_sides, inspect_case, named_cases
from harness.stages.options import IrOptions, compile_limits
from harness.store.run_directory import RunDirectory
from tests.builders import make_case, make_header
from tests.end_to_end.suites import COUNTED, MARKED, STOCK, lay_out_counted
from tests.fakes.fake_toolchain import make_fake_toolchain

BROKEN = "twice/broken@vm"
MORE = """
[variants.broken]
flags = ["--iree-preprocessing-pass-pipeline=builtin.module(util.func(no-such-pass))"]

[models.gone]
mlir = "gone.mlir"
function = "other"
inputs = []

[devices.gpu]
uri = "cuda://99"
backend = "vmvx"
"""

Inspect = Callable[..., Inspected]


@pytest.fixture
def inspect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Inspect:
    """Look at a case of a suite in the current folder, where a plugin is as if it were installed."""
    lay_out_counted(tmp_path)
    (tmp_path / "gone.mlir").write_text("func.func @other() { return")
    (tmp_path / "counted.toml").write_text(COUNTED.replace('"long/marked@*"', '"long/[bm]*@*", "long/*@gpu"') + MORE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "packages")

    def inspect(case: str, *phases: str, texts: bool = False) -> Inspected:
        output_format: Literal["mlir", "json"] = "mlir" if texts else "json"
        options = IrOptions(("counted.toml", case), phases=phases, format=output_format)
        (named,) = named_cases(options)
        return inspect_case(named, options, Progress())

    return inspect


# --- what there is ---


def test_the_phases_that_tell_most_or_those_that_are_asked_for_each_once_with_their_text(inspect: Inspect) -> None:
    found = inspect(STOCK)
    assert (found.case.name, tuple(found.counts), found.texts) == (STOCK, TELLING_PHASES, {})
    assert found.counts["input"].host["arith.addf"] == 1
    assert found.counts["flow"].executables["arith.addf"] == 1
    found = inspect(STOCK, "stream", "start", "stream", "flow", texts=True)
    assert list(found.counts) == list(found.texts) == ["start", "flow", "stream"], "in the compiler's order"
    assert "func.func @main(%arg0: tensor<4x8xf32>)" in found.texts["start"]
    for phase, op in {"start": "arith.addf", "flow": "flow.dispatch", "stream": "stream.cmd.dispatch"}.items():
        assert found.texts[phase].count(f"{op} ") == found.counts[phase].count(op) == 1


def test_two_cases_are_compared_without_a_phase_that_cannot_be_read_back_unless_it_is_asked_for(
    inspect: Inspect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(files: Mapping[str, Path], **options: Any) -> ProgramParts:
        if "encodings" in files:
            raise UnreadPhase("encodings", "bad shape", "leave phases out")
        return read_parts(files, **options)

    monkeypatch.setattr("harness.stages.ir.read_parts", read)
    sides = (f"counted.toml:{STOCK}", f"counted.toml:{STOCK}")
    compared = compare_cases(named_cases(IrOptions(sides)), IrOptions(sides), Progress())
    assert compared.unread == {"encodings": "bad shape"}
    assert {"flow", "stream"} <= compared.base.parts.program.keys()
    wanted = IrOptions(sides, phases=("flow", "encodings"))
    with pytest.raises(UnreadPhase, match="at phase 'encodings' cannot be read back"):
        compare_cases(named_cases(wanted), wanted, Progress())


@pytest.mark.parametrize(
    ("kind", "case", "phases", "words"),
    [
        (UsageError, "twice/stock", [], "counted.toml: there is no case 'twice/stock'; did you mean \"twice/stock@vm"),
        (UsageError, "*", [], "counted.toml: there is no case '*'; `harness list counted.toml` shows them all"),
        (CaseError, "twice/stock@gpu", [], "twice/stock@gpu is skipped here: no "),
        (CaseError, BROKEN, [], f"{BROKEN}: iree-compile printed an error, though it exited with status 0: 'no-such"),
        (CaseError, "gone/stock@vm", [], "gone/stock@vm: "),
        (CaseError, MARKED, ["flow", "input"], "the model enters the compiler at phase 'flow', so it has no IR at 'in"),
    ],
)
def test_what_cannot_be_inspected(
    inspect: Inspect, kind: type[HarnessError], case: str, phases: list[str], words: str
) -> None:
    with pytest.raises(kind) as caught:
        inspect(case, *phases)
    assert caught.value.exit_code == (ExitCode.CASE_FAILED if kind is CaseError else ExitCode.USAGE)
    assert str(caught.value).startswith(words)


# --- what a user calls a case ---

PLAIN, TILED, LATE = "net/stock@cpu", "net/tiled@cpu", "net/late@cpu"
SUITE, RUN = Path("net.toml"), Path("results/20260101-000000-net")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a suite and a run of another one."""
    monkeypatch.chdir(tmp_path)
    SUITE.touch()
    cases = (make_case(), make_case("tiled"), make_case("late"), replace(make_case("peer"), peer="onnxruntime"))
    compiler = ToolchainRecord(version="0.0.0", revision="", compiler_sha256="cc")
    header = make_header(RUN.name, cases=cases, suite="other.toml", toolchains=(compiler,))
    no_pass = Failure(stage="compile", message="no such pass")
    with RunDirectory.create(Path("results"), header) as directory:
        directory.append(Build(case=PLAIN, command=(), cache_key="ab" * 32, module_sha256="aa"))
        directory.append(Build(case=TILED, command=(), cache_key="", failure=no_pass))
    return tmp_path


OTHER = Path("other.toml")


@pytest.mark.parametrize(
    ("sides", "options", "named"),
    [
        ("gone.toml net/stock@cpu", {}, [(Path("gone.toml"), PLAIN, "")]),
        ("latest net/stock@cpu:3.12.0", {}, [(RUN, f"{PLAIN}:3.12.0", "")]),
        ("", {"suite": SUITE, "case": PLAIN}, [(SUITE, PLAIN, "")]),
        ("a b", {"suite": SUITE}, [(SUITE, "a", ""), (SUITE, "b", "")]),
        ("latest:a net.toml", {}, [(RUN, "a", ""), (SUITE, "a", "")]),
        ("latest net.toml a", {}, [(RUN, "a", ""), (SUITE, "a", "")]),
        ("iree==3.1 iree==3.2", {"suite": SUITE, "case": "a"}, [(SUITE, "a", "iree==3.1"), (SUITE, "a", "iree==3.2")]),
        ("latest:a iree==3.2:b", {}, [(RUN, "a", ""), (OTHER, "b", "iree==3.2")]),
        ("bl/one:a bl/newest", {"suite": SUITE}, [(SUITE, "a", "iree==bl/one"), (SUITE, "a", "iree==bl/newest")]),
        ("pr:7~base:a iree==main", {"suite": SUITE}, [(SUITE, "a", "iree==pr:7~base"), (SUITE, "a", "iree==main")]),
    ],
)
def test_names(here: Path, sides: str, options: dict[str, Any], named: list[tuple[Path, str, str]]) -> None:
    for word in ("bl/one/iree-compile",) if "bl/" in sides else ():
        Path(word).parent.mkdir(parents=True)
        Path(word).touch()
    wanted = tuple(NamedCase(place=place, case=case, release=release) for place, case, release in named)
    assert named_cases(IrOptions(tuple(sides.split()), **options)) == wanted


@pytest.mark.parametrize(
    ("sides", "options", "sentence"),
    [
        ("a b c d", {"suite": SUITE}, "4 cases are given; give one case or two, each as "),
        ("nowhere:a", {}, "nowhere:a: is no suite, run or release; give one case or two"),
        ("latest:a b", {}, "b: is no suite, run or release; give one case or two"),
        ("iree==3.1 iree==3.2", {"case": "a"}, "iree==3.1: is of no suite; give one case or two"),
        ("latest", {}, "latest: which case is not said; give it with --case, one of net/stock@cpu, net/tiled"),
    ],
)
def test_what_is_no_name(here: Path, sides: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        named_cases(IrOptions(tuple(sides.split()), **options))
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("case", "compiler", "kind", "words"),
    [
        ("net/stok@cpu", "cc", UsageError, "there is no case 'net/stok@cpu'; did you mean \"net/stock@cpu\"?"),
        ("net/peer@cpu", "cc", UsageError, "net/peer@cpu is run by the peer 'onnxruntime', which has no IR; name"),
        (TILED, "cc", CaseError, f"{TILED} was not compiled (no such pass)"),
        (LATE, "cc", CaseError, f"{LATE} was not compiled (it was left out)"),
        (PLAIN, "dd", ToolchainError, "IREE 0.0.0 was built again since, and IR comes from"),
        (PLAIN, "cc", RunError, f"the module of {PLAIN} in {RUN} is no longer in the cache; make the run again"),
    ],
)
def test_what_a_run_does_not_have(
    here: Path, monkeypatch: pytest.MonkeyPatch, case: str, compiler: str, kind: type[HarnessError], words: str
) -> None:
    installed = replace(make_fake_toolchain(here / "tools"), compiler_sha256=compiler)
    monkeypatch.setenv("HARNESS_CACHE", str(here / "cache"))
    monkeypatch.setattr(compare_sides, "get_toolchains", lambda *_, **__: (installed,))
    with pytest.raises(kind) as caught:
        compile_sides([NamedCase(place=RUN, case=case)], compile_limits(), Progress())
    assert str(caught.value).removeprefix(f"{RUN}: ").startswith(words)
