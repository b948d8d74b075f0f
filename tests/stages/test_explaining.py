"""The line of `harness explain`: which case of which sides is asked for, and what goes from one step to the next."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from harness.compare.engine import Generation, Outcome
from harness.compare.pairs import Pair, Side
from harness.compare.samplers import MeasurementPolicy, Module
from harness.errors import CaseError, Interrupted, UsageError
from harness.explain.attribute import Attribution, Once, Sampled
from harness.explain.code import Code
from harness.explain.profile import Profile
from harness.ir.differences import Executable, ProgramParts
from harness.process import Limits
from harness.records.case import Case
from harness.records.explanation import Elsewhere, Explanation
from harness.stages import explaining, ir
from harness.stages import session as sides_session
from harness.stages.explaining import (
    AskedPair,
    ExplanationSession,
    explain_command,
    explain_pair,
    keep_in,
    pair_of_runs,
    pair_of_variant,
)
from harness.stages.options import ExplainOptions, RunOptions
from harness.stages.session import going_on
from harness.stats.rule import Rule
from harness.store.folders import find_folder
from harness.store.run_directory import RunDirectory
from harness.store.work_directory import Begun, ExplanationDirectory
from tests.builders import FLAGS, SUITE, Notes, a_loadable, make_header
from tests.compare.runs import a_case, a_side
from tests.fakes.fake_toolchain import make_fake_toolchain
from tests.report.explanations import make_part

# --- which case of which sides ---

STOCK, FAST, INERT = a_case("stock", baseline=True), a_case("fast", baseline=False), a_case("inert", baseline=False)
OTHER = [a_case(variant, device="gpu", baseline=variant == "stock") for variant in ("stock", "fast")]
SIDE = a_side(STOCK, FAST, INERT, label="results/run")
NO_BASELINE = a_side(FAST, label="results/run")
TWO_DEVICES = a_side(STOCK, FAST, *OTHER, label="results/run")
BASE = a_side(STOCK, FAST, label="results/base")


@pytest.mark.parametrize(
    ("words", "options", "sentence"),
    [
        ("a", {}, "give two sides and a case, as in `harness explain"),
        ("iree==3.12.0 m/v@d", {}, "m/v@d: is no side, and a case has two sides before it; give two sides and a case"),
        ("a b c", {"case": "d"}, "c and --case d both say which case is meant; leave one of them out"),
        ("a b", {"variant": "fast"}, "or one run with --within and --variant"),
        ("a b c", {"within": True}, "or one run with --within and --variant"),
    ],
)
def test_words_that_do_not_go_together(words: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        ExplanationSession(ExplainOptions(tuple(words.split()), **options))
    assert sentence in str(caught.value)


def test_a_variant_is_held_against_its_baseline() -> None:
    for side, variant, case in (
        (SIDE, "fast", None),
        (SIDE, None, "net/fast@cpu"),
        (TWO_DEVICES, "fast", "net/fast@cpu"),
    ):
        assert pair_of_variant(side, variant, case).both == (STOCK, FAST)
    assert pair_of_runs(BASE, SIDE, "net/stock@cpu").both == (STOCK, STOCK)


@pytest.mark.parametrize(
    ("sides", "variant", "case", "sentence"),
    [
        ((SIDE,), None, None, "which case is not said; give it with --case, one of net/fast@cpu, net/inert@cpu"),
        ((SIDE,), "fats", None, "has no variant 'fats'; did you mean \"fast\"?"),
        ((SIDE,), "stock", None, "net/stock@cpu is the baseline itself; name another variant with --variant"),
        ((TWO_DEVICES,), "fast", None, "which case is not said; give it with --case, one of net/fast@cpu, net/f"),
        ((NO_BASELINE,), "fast", None, "net@cpu has no baseline; name another case"),
        ((BASE, SIDE), None, None, "which case is not said; give it with --case, one of net/stock@cpu, net/fast"),
        ((BASE, SIDE), None, "net/fats@cpu", "there is no case 'net/fats@cpu'; did you mean \"net/fast@cpu\"?"),
        ((BASE, SIDE), None, "net/inert@cpu", "results/base has no case 'net/inert@cpu', so there is nothing to hold "),
    ],
)
def test_a_case_that_is_not_clear(
    sides: tuple[Side, ...], variant: str | None, case: str | None, sentence: str
) -> None:
    with pytest.raises(UsageError) as caught:
        pair_of_runs(sides[0], sides[1], case) if len(sides) == 2 else pair_of_variant(sides[0], variant, case)
    assert sentence in str(caught.value)


ONE_CASE = SUITE.replace("[variants.tiled]", "").replace('flagsets = ["tiling"]', "")


def test_a_case_of_two_releases_may_be_left_out_where_a_suite_has_one_and_it_goes_on_with_what_was_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_suite(options: RunOptions, *_: object, on_begin: Callable[[RunDirectory], None], **__: object) -> Path:
        assert options.patterns == ("net/stock@cpu",)
        on_begin(RunDirectory.create(tmp_path / "results", make_header()))
        raise Interrupted("interrupted")

    monkeypatch.setattr(sides_session, "run_suite", run_suite)
    tools = [make_fake_toolchain(tmp_path / "tools")]
    monkeypatch.setattr(sides_session, "get_toolchains", lambda names, **_: tools * len(names))
    suite = tmp_path / "small.toml"
    suite.write_text(f'peers = ["onnxruntime"]\n{ONE_CASE}')
    (tmp_path / "net.mlir").touch()
    (tmp_path / "flags.toml").write_text(FLAGS)
    options = ExplainOptions(("iree==3.10.0", "iree==3.12.0"), suite=suite, results=tmp_path / "results")
    with pytest.raises(Interrupted) as caught, ExplanationSession(options, ("explain",)) as session:
        session.asked()
    path = find_folder("latest", options.results, kind="explanation", unfinished=True)
    assert str(caught.value) == f"interrupted; go on with `harness explain --resume {path}`"
    again, _ = going_on(ExplanationDirectory, ExplainOptions(resume=path))
    assert again.words == options.words
    # What the suite does not say is said before anything is compiled.
    suite.write_text(f"{ONE_CASE}\n[variants.fast]\n")
    with pytest.raises(UsageError, match=r"one of net/stock@cpu, net/fast@cpu$"):
        ExplanationSession(options).asked()
    with pytest.raises(UsageError, match=r"there is no case 'net/stok@cpu'; did you mean \"net/stock@cpu\"\?$"):
        ExplanationSession(replace(options, words=(*options.words, "net/stok@cpu"))).asked()


# --- from one step to the next ---

POLICY = MeasurementPolicy(rule=Rule(floor=0.01), budget_s=9.0, cap_s=1.0, seed=3, call_limit_s=1.0, limits=Limits())
NOW = datetime(2026, 11, 22, 14, 0, 0, tzinfo=timezone.utc)
FASTER = a_case("fast", compile_flags=("--fast",))
BEGUN = Begun(created=NOW.isoformat(), machine="m", options={}, command=("harness", "explain"))
RUN = a_side(STOCK, FASTER, label="results/run")
WITHIN = AskedPair(pair=Pair(name=FASTER.name, base=STOCK, head=FASTER), base=RUN, head=RUN, within=True)
LATENCY = Generation(log_ratio=0.5, base=3.2e6, head=5.2e6, rounds=4, seconds=1.0)
CHANGED = make_part("conv", 2.0, 4.0, "regressed", base=("d_0",), head=("d_0",))
SAME = make_part("pad", 1.0, 1.0, base=("d_1",), head=("d_1",))


class Edges:
    """What the line meets outside of it; each may be replaced."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.toolchain = make_fake_toolchain(folder / "tools")
        self.notes = Notes()
        self.coded: list[Sequence[str]] = []
        self.directory: ExplanationDirectory | None = None
        self.once: Once | None = None
        self.code_error = ""
        executables = tuple(Executable(name=name, phases={}, dispatches=1) for name in ("d_0", "d_1"))
        self.parts = ProgramParts(program={}, executables=executables)  # The same program on both sides
        monkeypatch.setattr(explaining, "attribute", self._attribute)
        monkeypatch.setattr(explaining, "_parts", lambda *_: self.parts)
        monkeypatch.setattr(explaining, "final_code", self._final_code)
        monkeypatch.setattr(ir, "find_module", self._find_module)

    def _find_module(self, side: Side, case: Case, *_: object) -> Module:
        loadable = a_loadable(case.name, self.toolchain)
        build = side.evidence.builds[case.name]
        return Module(case=case, loadable=loadable, mlir=Path("model.mlir"), files=(), build=build)

    def _attribute(
        self, modules: tuple[Module, Module], _: object, policy: MeasurementPolicy, folder: Path, **given: Any
    ) -> Attribution:
        assert (*(module.case for module in modules), policy) == (STOCK, FASTER, POLICY)
        assert folder.is_dir() and not list(folder.iterdir())
        self.once = given["once"]
        outcome = Outcome(name="latency", decision="regressed", reason="confirmed", generations=(LATENCY,))
        elsewhere = Elsewhere(device_ns={}, host_ns=2e5, profiled_ratio=1.0)
        return Attribution(
            method="profile",
            latency=outcome,
            parts=(CHANGED, SAME),
            base_elsewhere=elsewhere,
            head_elsewhere=elsewhere,
            generations=(),
            notes=("a note of measuring",),
        )

    def _final_code(self, _: object, names: Sequence[str], *__: object) -> dict[str, Code]:
        if self.code_error:
            raise CaseError("ir", self.code_error)
        self.coded.append(names)
        return {}

    def explain(self) -> Explanation:
        """Explain one variant beside the baseline, beside which its convolution takes twice as long."""
        toolchains = dict.fromkeys(WITHIN.base.toolchains.values(), self.toolchain)
        return explain_pair(WITHIN, toolchains, POLICY, self.notes, created=NOW, directory=self.directory)


@pytest.fixture
def edges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Edges:
    return Edges(tmp_path, monkeypatch)


def test_what_is_found_goes_into_the_explanation(edges: Edges) -> None:
    explanation = edges.explain()
    assert explanation.case == "net/fast@cpu"
    assert (explanation.base.variants, explanation.head.variants) == (("stock",), ("fast",))
    assert [part.operation for part in explanation.parts] == ["conv", "pad"]
    assert (explanation.latency.base_value, explanation.latency.head_value) == (3.2e6, 5.2e6)
    assert explanation.sentence.startswith("net/fast@cpu ")
    assert any("the head adds --fast" in note for note in explanation.notes)
    assert "a note of measuring" in explanation.notes
    assert edges.coded == [["d_0"], ["d_0"]], "only what changed is compiled once more"
    assert explanation.command == ("harness", "explain", "--within", "results/run", "--case", "net/fast@cpu")
    edges.code_error = "iree-compile was killed"
    explanation = edges.explain()
    assert len(explanation.parts) == 2, "a final code that cannot be had costs nothing else"
    assert "The final code of dispatches is not compared: iree-compile was killed" in explanation.notes
    edges.parts = replace(edges.parts, executables=())
    with pytest.raises(CaseError, match="neither program has a dispatch"):
        edges.explain()


def test_its_generations_are_on_disk_as_they_end(edges: Edges, tmp_path: Path) -> None:
    profile = Profile(calls=3, call_ns=5.0, dispatch_ns={"d_0": 4.0}, untimed={"d_1": "why"})
    sampled = Sampled(latency=LATENCY, base=profile, head=profile, seconds=2.0)
    with ExplanationDirectory.create(tmp_path, "small", NOW, BEGUN) as directory:
        edges.directory = directory
        edges.explain()
        assert edges.once is not None
        assert edges.once("alone", 0, lambda: sampled) is sampled
    with ExplanationDirectory.resume(directory.path) as edges.directory:
        edges.explain()
        again = edges.once("alone", 0, Mock(side_effect=AssertionError("it is known")))
        assert again == sampled
        assert "Of before the interruption: 1 generation, which count" in edges.notes.lines
        keep_in(edges.directory, edges.explain())
    assert {file.name for file in directory.path.iterdir()} == {"explanation.json", "report.md", "finished.json"}


def test_the_command_of_two_releases_means_the_same_tomorrow() -> None:
    base, head = a_side(STOCK, label="iree==3.12.0"), a_side(STOCK, label="iree==3.13.0")
    asked = AskedPair(pair=Pair(name=STOCK.name, base=STOCK, head=STOCK), base=base, head=head)
    suite = base.run.header.suite
    assert explain_command(asked) == (
        *("harness", "explain", "iree==3.12.0", "iree==3.13.0", "--suite", suite, "--case", "net/stock@cpu"),
    )
