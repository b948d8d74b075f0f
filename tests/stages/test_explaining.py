"""The line of `harness explain` with its edges replaced: what goes from one to the next, and what costs nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from harness.compare.engine import Generation, Outcome
from harness.compare.pairs import Pair, Side
from harness.compare.samplers import MeasurementPolicy, Module
from harness.errors import CaseError, RunError
from harness.explain.attribute import Attribution, Once, ProgramSide, Sampled
from harness.explain.code import Code
from harness.explain.profile import Profile
from harness.ir.differences import Executable, ProgramParts
from harness.process import Limits
from harness.records.case import Case
from harness.records.explanation import Elsewhere
from harness.stages import explaining, ir
from harness.stages.explaining import INTERRUPTED, AskedPair, Found, explain_command, explain_pair, keep_in
from harness.stats.rule import Rule
from harness.store.work_directory import Begun, ExplanationDirectory
from tests.builders import Notes, a_loadable
from tests.compare.runs import a_case, a_side
from tests.fakes.fake_toolchain import make_fake_toolchain
from tests.report.explanations import make_part

POLICY = MeasurementPolicy(rule=Rule(floor=0.01), budget_s=9.0, cap_s=1.0, seed=3, call_limit_s=1.0, limits=Limits())
NOW = datetime(2026, 11, 22, 14, 0, 0, tzinfo=timezone.utc)
STOCK, FAST = a_case("stock"), a_case("fast", compile_flags=("--fast",))
SIDE = a_side(STOCK, FAST, label="results/run")
WITHIN = AskedPair(pair=Pair(name=FAST.name, base=STOCK, head=FAST), base=SIDE, head=SIDE, within=True)
CHANGED = make_part("conv", 2.0, 4.0, "regressed", base=("d_0",), head=("d_0",))
SAME = make_part("pad", 1.0, 1.0, base=("d_1",), head=("d_1",))


class Edges:
    """What the line meets outside of it; each may be replaced."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.toolchain = make_fake_toolchain(folder / "tools")
        self.notes = Notes()
        self.coded: list[Sequence[str]] = []
        self.is_stopped = False
        self.directory: ExplanationDirectory | None = None
        self.once: Once | None = None
        self.code_error = ""
        self.executables: tuple[Executable, ...] = (
            Executable(name="d_0", phases={}, dispatches=1),
            Executable(name="d_1", phases={}, dispatches=1),
        )
        for name in ("attribute", "_parts", "_final_code"):
            monkeypatch.setattr(explaining, name, getattr(self, name.strip("_")))
        monkeypatch.setattr(ir, "find_module", self.find_module)

    def find_module(self, side: Side, case: Case, *_: object) -> Module:
        """A module of that build."""
        loadable = a_loadable(case.name, self.toolchain)
        build = side.evidence.builds[case.name]
        return Module(case=case, loadable=loadable, mlir=Path("model.mlir"), files=(), build=build)

    def parts(self, *_: object) -> ProgramParts:
        """The same program on both sides."""
        return ProgramParts(program={}, executables=self.executables)

    def attribute(
        self, base: ProgramSide, head: ProgramSide, policy: MeasurementPolicy, folder: Path, **given: Any
    ) -> Attribution:
        """A convolution that takes twice as long."""
        assert (base.module.case, head.module.case) == (STOCK, FAST)
        assert policy is POLICY
        assert folder.is_dir() and not list(folder.iterdir())
        self.once = given["once"]
        generation = Generation(log_ratio=0.5, base=3.2e6, head=5.2e6, rounds=4, seconds=1.0)
        return Attribution(
            method="profile",
            latency=Outcome(name="latency", decision="regressed", reason="confirmed", generations=(generation,)),
            parts=(CHANGED, SAME),
            base_elsewhere=Elsewhere(device_ns={}, host_ns=2e5, profiled_ratio=1.0),
            head_elsewhere=Elsewhere(device_ns={}, host_ns=2e5, profiled_ratio=1.0),
            generations=(),
            notes=("a note of measuring",),
            is_stopped=self.is_stopped,
        )

    def final_code(self, _: object, names: Sequence[str], __: object) -> Mapping[str, Code]:
        """Nothing, of the names that are kept."""
        if self.code_error == INTERRUPTED:
            raise KeyboardInterrupt
        if self.code_error:
            raise CaseError("ir", self.code_error)
        self.coded.append(names)
        return {}

    def explain(self) -> Found:
        """Explain one variant beside the baseline."""
        toolchains = {"0.0.0": self.toolchain}
        return explain_pair(WITHIN, toolchains, POLICY, self.notes, created=NOW, directory=self.directory)


@pytest.fixture
def edges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Edges:
    return Edges(tmp_path, monkeypatch)


def test_what_is_found_goes_into_the_explanation(edges: Edges) -> None:
    found = edges.explain()
    explanation = found.explanation
    assert not found.is_stopped
    assert explanation.case == "net/fast@cpu"
    assert (explanation.base.variants, explanation.head.variants) == (("stock",), ("fast",))
    assert [part.operation for part in explanation.parts] == ["conv", "pad"]
    assert (explanation.latency.base_value, explanation.latency.head_value) == (3.2e6, 5.2e6)
    assert explanation.sentence.startswith("net/fast@cpu ")
    assert any("the head adds --fast" in note for note in explanation.notes)
    assert "a note of measuring" in explanation.notes
    assert edges.coded == [["d_0"], ["d_0"]], "only what changed is compiled once more"
    assert explanation.command == ("harness", "explain", "--within", "results/run", "--case", "net/fast@cpu")


def test_a_final_code_that_cannot_be_had_costs_nothing_else(edges: Edges) -> None:
    edges.code_error = "iree-compile was killed"
    explanation = edges.explain().explanation
    assert len(explanation.parts) == 2
    assert "The final code of dispatches is not compared: iree-compile was killed" in explanation.notes


def test_one_that_is_stopped_loses_nothing_and_compiles_nothing_more(edges: Edges) -> None:
    edges.code_error = INTERRUPTED
    late = edges.explain()
    assert late.is_stopped and [part.operation for part in late.explanation.parts] == ["conv", "pad"]
    assert "Interrupted before the final code was compared" in late.explanation.notes
    edges.is_stopped = True
    found = edges.explain()
    assert found.is_stopped and found.explanation.notes[0] == INTERRUPTED
    assert edges.coded == []


def test_a_program_without_dispatches_cannot_be_explained(edges: Edges) -> None:
    edges.executables = ()
    with pytest.raises(CaseError, match="the base's program has no dispatch"):
        edges.explain()


def test_its_generations_are_on_disk_as_they_end(edges: Edges, tmp_path: Path) -> None:
    begun = Begun(created=NOW.isoformat(), machine="m", options={}, command=("harness", "explain"))
    profile = Profile(calls=3, call_ns=5.0, dispatch_ns={"d_0": 4.0}, untimed={"d_1": "why"})
    latency = Generation(log_ratio=0.5, base=3.0, head=5.0, rounds=4, seconds=1.0)
    sampled = Sampled(latency=latency, base=profile, head=profile, seconds=2.0)
    with ExplanationDirectory.create(tmp_path, "small", NOW, begun) as directory:
        edges.directory = directory
        edges.explain()
        assert edges.once is not None
        assert edges.once("alone", 0, lambda: sampled) is sampled
    with ExplanationDirectory.resume(directory.path) as edges.directory:
        edges.explain()
        again = edges.once("alone", 0, Mock(side_effect=AssertionError("it is known")))
        assert again == sampled
        assert "Of before the interruption: 1 generation, which count" in edges.notes.lines
        keep_in(edges.directory, edges.explain().explanation)
    assert {file.name for file in directory.path.iterdir()} == {"explanation.json", "report.md", "finished.json"}


def test_what_other_modules_gave_is_no_part_of_it(edges: Edges, tmp_path: Path) -> None:
    begun = Begun(created=NOW.isoformat(), machine="m", options={}, command=())
    with ExplanationDirectory.create(tmp_path, "small", NOW, begun) as directory:
        directory.keep_generation("the whole case", "alone", 0, "others", {})
    with ExplanationDirectory.resume(directory.path) as edges.directory, pytest.raises(RunError, match="other modules"):
        edges.explain()


def test_the_command_means_the_same_tomorrow() -> None:
    base, head = a_side(STOCK, label="iree==3.12.0"), a_side(STOCK, label="iree==3.13.0")
    asked = AskedPair(pair=Pair(name=STOCK.name, base=STOCK, head=STOCK), base=base, head=head)
    suite = base.run.header.suite
    assert explain_command(asked) == (
        *("harness", "explain", "iree==3.12.0", "iree==3.13.0", "--suite", suite, "--case", "net/stock@cpu"),
    )
    other = replace(WITHIN, pair=Pair(name="net/inert@cpu", base=FAST, head=a_case("inert")))
    assert explain_command(other)[4:8] == ("--variant", "fast", "--variant", "inert")
