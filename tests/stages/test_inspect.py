"""What one case's IR is at phases of the real compiler: which phases, which case, and what can be wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from harness.errors import CaseError, ExitCode, HarnessError, RunError, UsageError
from harness.ir.counts import Inspected
from harness.ir.differences import ProgramParts, read_parts
from harness.ir.tools import UnreadPhase
from harness.progress import Silent
from harness.stages.inspect import TELLING_PHASES, compare_cases, inspect_case
from harness.stages.ir_sides import named_cases
from harness.stages.options import IrOptions
from tests.end_to_end.suites import COUNTED, LONG, MARKED, STOCK, lay_out_counted

DOUBLED, BROKEN = "twice/doubled@vm", "twice/broken@vm"
MORE = """
[variants.doubled]
plugins = ["switches"]

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
    (tmp_path / "counted.toml").write_text(COUNTED.replace('"long/marked@*"', '"long/[bdm]*@*", "long/*@gpu"') + MORE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "packages")

    def inspect(case: str, *phases: str, texts: bool = False) -> Inspected:
        output_format: Literal["mlir", "json"] = "mlir" if texts else "json"
        options = IrOptions(("counted.toml", case), phases=phases, format=output_format)
        (named,) = named_cases(options)
        return inspect_case(named, options, Silent())

    return inspect


def refusal(inspect: Inspect, kind: type[HarnessError], case: str, *phases: str) -> str:
    with pytest.raises(kind) as caught:
        inspect(case, *phases)
    assert caught.value.exit_code == (ExitCode.CASE_FAILED if kind is CaseError else ExitCode.USAGE)
    return str(caught.value)


# -------------------------------------------------------------------------------------------------------- what there is


def test_by_default_the_phases_that_tell_most_and_no_text(inspect: Inspect) -> None:
    found = inspect(STOCK)
    assert found.case.name == STOCK
    assert tuple(found.counts) == TELLING_PHASES
    assert found.counts["input"].host["arith.addf"] == 1
    assert found.counts["flow"].executables["arith.addf"] == 1
    assert found.texts == {}


def test_phases_come_in_the_compilers_order_each_once_and_with_their_text(inspect: Inspect) -> None:
    found = inspect(STOCK, "stream", "start", "stream", "flow", texts=True)
    assert list(found.counts) == list(found.texts) == ["start", "flow", "stream"]
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

    monkeypatch.setattr("harness.stages.inspect.read_parts", read)
    sides = (f"counted.toml:{STOCK}", f"counted.toml:{STOCK}")
    compared = compare_cases(named_cases(IrOptions(sides)), IrOptions(sides), Silent())
    assert compared.unread == {"encodings": "bad shape"}
    assert {"flow", "stream"} <= compared.base.parts.program.keys()
    wanted = IrOptions(sides, phases=("flow", "encodings"))
    with pytest.raises(UnreadPhase, match="at phase 'encodings' cannot be read back"):
        compare_cases(named_cases(wanted), wanted, Silent())


def test_a_plugins_rewrite_shows_from_its_phase_on(inspect: Inspect) -> None:
    assert inspect(DOUBLED, "input").counts["input"].count("arith.addf") == 0
    found = inspect(MARKED)
    assert tuple(found.counts) == tuple(phase for phase in TELLING_PHASES if phase != "input")
    assert refusal(inspect, CaseError, MARKED, "flow", "input") == (
        "the model enters the compiler at phase 'flow', so it has no IR at 'input'; take a later phase"
    )


# ------------------------------------------------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ("kind", "case", "phases", "sentence"),
    [
        (
            UsageError,
            "twice/stock",
            [],
            "counted.toml: there is no case 'twice/stock'; did you mean \"twice/stock@vm\"?",
        ),
        (UsageError, "*", [], "counted.toml: there is no case '*'; `harness list counted.toml` shows them all"),
        (CaseError, "twice/stock@gpu", [], "twice/stock@gpu is skipped here: no "),
        (
            CaseError,
            BROKEN,
            [],
            f"{BROKEN}: iree-compile printed an error, though it exited with status 0: 'no-such-pass' does not refer "
            "to a registered pass or pass pipeline",
        ),
        (CaseError, "gone/stock@vm", [], "gone/stock@vm: "),
        (
            CaseError,
            LONG,
            ["bufferized"],
            "the IR of a dispatch cannot be written (File name too long); give the model's function a short name",
        ),
    ],
    ids=["a case", "a pattern", "skipped", "does not compile", "cannot be read", "IR cannot be had"],
)
def test_what_cannot_be_inspected(
    inspect: Inspect, kind: type[HarnessError], case: str, phases: list[str], sentence: str
) -> None:
    assert refusal(inspect, kind, case, *phases).startswith(sentence)


@pytest.mark.parametrize("made", [False, True], ids=["at once", "once the model is there"])
def test_a_cache_that_cannot_be_written(
    inspect: Inspect, made: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setenv("HARNESS_CACHE", str(cache))
    if made:
        refusal(inspect, CaseError, BROKEN)
        (cache / "builds").rmdir()
    (cache / ("builds" if made else "models")).write_text("no folder")
    assert refusal(inspect, RunError, STOCK).startswith(f"{cache}: the cache cannot be written (")
