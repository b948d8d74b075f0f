"""Searches from outside, with the real compiler and worker on one small convolution; one is made and then looked at."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from harness.bisect.variants import CompileConfig
from harness.compare.samplers import Module
from harness.errors import CaseError, UsageError
from harness.explain.profile import Profile
from harness.progress import Silent
from harness.records.bisection import Trial
from harness.records.comparison import Verdict
from harness.records.tuning import TunedDispatch, Tuning
from harness.stages import tune_underway, tuning, tuning_lowering
from harness.stages.options import TuneOptions
from harness.stages.tune_underway import TuneTarget, TuneUnderway, Untimed
from harness.stages.tuning import Answered, AnswerSearch, NoStart, tune
from harness.stages.tuning_changes import FoundForms
from harness.stages.tuning_lowering import Lowered, Winner
from harness.stats.rule import Rule
from harness.store.files import adapter
from harness.store.journal import Begun
from harness.store.kinds import TUNING
from harness.store.search_directory import RECORD_FILE, SPEC_FILE, VARIANT_FILE, TuneDirectory
from harness.suite.load import load_suite
from harness.tune import tiles
from tests.builders import SUITE as SMALL
from tests.conftest import MadeOnce
from tests.fakes.fake_toolchain import make_fake_toolchain
from tests.stages.tuned import ROOT, Scripted, a_dispatch, found_in, tile

CONVOLUTION = """\
func.func @main(%image: tensor<1x32x64x32xf32>, %kernel: tensor<3x3x32x64xf32>) -> tensor<1x30x62x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x30x62x64xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x30x62x64xf32>) -> tensor<1x30x62x64xf32>
  %c = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
    ins(%image, %kernel : tensor<1x32x64x32xf32>, tensor<3x3x32x64xf32>)
    outs(%filled : tensor<1x30x62x64xf32>) -> tensor<1x30x62x64xf32>
  return %c : tensor<1x30x62x64xf32>
}
"""
SUITE = """\
name = "small"
baseline = "stock"
flagset_files = ["flags.toml"]

[models.broken]
mlir = "broken.mlir"
function = "main"
inputs = []

[models.net]
mlir = "net.mlir"
function = "main"
inputs = [{ shape = [1, 32, 64, 32] }, { shape = [3, 3, 32, 64] }]
check = "none"

[variants.stock]

[variants.offered]
flagsets = ["z-idle", "z-broken"]

[devices.cpu]
uri = "local-sync"
backend = "llvm-cpu"
compile_flags = [
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
]

[devices.vmvx]
uri = "local-sync"
backend = "vmvx"
compile_flags = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=vmvx"]
"""
FLAGS = """\
[flagsets.z-idle]
compile = ["--iree-global-opt-enable-quantized-matmul-reassociation"]

[flagsets.z-broken]
compile = ["--iree-hal-target-device=nowhere"]
"""
ONLY_OURS = ("[!zi]*", "i[!s]*", "isolate.*")


def searched(**options: Any) -> list[Tuning | NoStart]:
    given: dict[str, Any] = {"models": ("net",), "budget": 400.0, "without": ONLY_OURS, **options}
    return list(tune(TuneOptions(Path("small.toml"), **given), ("harness", "tune"), Silent(), lambda _: {}))


def in_one_round(patch: pytest.MonkeyPatch) -> None:
    """Try six configurations and no neighbour of the best."""
    first = tiles.first_configurations
    patch.setattr(tuning_lowering, "first_configurations", lambda *given: first(*given)[:6])
    patch.setattr(tuning_lowering, "neighbours", lambda *_: ())


@pytest.fixture(scope="session")
def made(made_once: MadeOnce) -> Path:
    """A folder with a suite and, in `tuned`, a search."""

    def make(folder: Path) -> None:
        (folder / "net.mlir").write_text(CONVOLUTION)
        (folder / "broken.mlir").write_text("func.func @main() { no_such.operation }")
        (folder / "small.toml").write_text(SUITE)
        (folder / "flags.toml").write_text(FLAGS)
        with pytest.MonkeyPatch.context() as patch:
            in_one_round(patch)
            patch.chdir(folder)
            searched()

    return made_once("tuned", make)


@pytest.fixture
def again(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Tuning | NoStart]]:
    """That search once more, in a copy of its folder, with its confirmation as it was."""
    shutil.copytree(made, tmp_path, symlinks=True, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    confirmed = next(
        json.loads(line)["value"]
        for line in (made / "tuned" / "net@cpu" / RECORD_FILE).read_text().splitlines()
        if '"confirm/' in line
    )
    trial: Trial = adapter(Trial).validate_python(confirmed)
    in_one_round(monkeypatch)
    monkeypatch.setattr(tune_underway, "try_pair", lambda *_: trial)
    return searched


def record_in(folder: Path) -> Path:
    return folder / "tuned" / "net@cpu" / RECORD_FILE


def test_a_convolution_is_tuned_and_the_variant_goes_into_any_suite(made: Path, tmp_path: Path) -> None:
    folder = made / "tuned" / "net@cpu"
    found = TUNING.load(folder)
    assert found.answer == "faster", found.sentence
    standings = {each.name: each.standing for each in found.singles}
    assert (standings["z-idle"], standings["z-broken"]) == ("inert", "failed")
    (convolution,) = found.dispatches
    assert convolution.kept and convolution.whole is not None and convolution.whole < 1
    assert {each.head for each in found.confirmations if each.verdict == "improved"} == {"with-spec"}
    assert "lowering_config" in found.spec
    assert found.settings["out"] == "tuned", "by which a page says where the variant lies"
    assert (folder / SPEC_FILE).read_text() == found.spec
    assert found.by_hand and found.spent_s == pytest.approx(sum(found.stages.values()), abs=0.5)
    shutil.copytree(made, tmp_path / "copy", symlinks=True)
    suite = tmp_path / "copy" / "small.toml"
    suite.write_text(f'variant_files = ["tuned/net@cpu/{VARIANT_FILE}"]\n{SUITE}')
    tuned = next(each for each in load_suite(suite).suite.variants if each.name == "tuned-net")
    assert [use.name for use in tuned.plugins] == ["isolate", "tuning-spec"]
    assert found.spec in str(tuned.plugins[1].options["spec"])


def test_a_second_call_plays_back_and_measures_nothing(
    again: Callable[..., list[Tuning | NoStart]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> object:
        raise AssertionError("this is known")

    for name in ("measured", "try_pair", "run_suite"):
        monkeypatch.setattr(tune_underway, name, refuse)
    for name in ("profile_module", "time_module"):
        monkeypatch.setattr(tuning_lowering, name, refuse)
    before = record_in(tmp_path).read_bytes()
    document = (tmp_path / "tuned" / "net@cpu" / "tuning.json").read_text()
    found = again()
    assert record_in(tmp_path).read_bytes() == before
    assert found == [TUNING.load(tmp_path / "tuned" / "net@cpu")]
    assert (tmp_path / "tuned" / "net@cpu" / "tuning.json").read_text() == document


def test_a_search_that_was_killed_goes_on_from_the_middle_of_a_line(
    again: Callable[..., list[Tuning | NoStart]], tmp_path: Path
) -> None:
    record = record_in(tmp_path)
    lines = record.read_text().splitlines(keepends=True)
    races = [number for number, line in enumerate(lines) if '"race/' in line]
    record.write_text("".join(lines[: races[0] + 1]) + lines[races[0] + 1][:40])
    (tmp_path / "tuned" / "net@cpu" / VARIANT_FILE).unlink()
    (found,) = again()
    assert isinstance(found, Tuning)
    assert record.read_text().startswith("".join(lines[: races[0] + 1]))
    assert (found.answer, found.stages["compile"] > 0) == ("faster", True)
    assert (tmp_path / "tuned" / "net@cpu" / VARIANT_FILE).is_file()


def test_a_model_that_cannot_be_measured_leaves_the_others_alone(
    again: Callable[..., list[Tuning | NoStart]],
) -> None:
    broken, found = again(models=())
    assert isinstance(broken, NoStart) and isinstance(found, Tuning)
    assert str(broken).startswith("broken/stock@cpu cannot be measured ([models.broken] mlir: ")
    assert found.answer == "faster"


def test_another_search_in_the_same_folder_is_refused(
    again: Callable[..., list[Tuning | NoStart]], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"--out: .*net@cpu is a search with another floor and another seed; give the"):
        again(floor=0.5, seed=3)
    (tmp_path / "small.toml").write_text(f'{SUITE}description = "of another device, so nothing here"\n')
    assert again()
    (tmp_path / "small.toml").write_text(SUITE.replace('uri = "local-sync"', 'uri = "local-task"'))
    with pytest.raises(UsageError, match=r"is a search with another \[devices\.cpu\]; give the"):
        again()
    (tmp_path / "small.toml").write_text(SUITE)
    (tmp_path / "net.mlir").write_text(f"{CONVOLUTION}// edited\n")
    with pytest.raises(UsageError, match="is a search with another model file; give the"):
        again()


def test_what_is_not_confirmed_is_not_written(
    again: Callable[..., list[Tuning | NoStart]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial: Any = vars(tune_underway)["try_pair"]  # the one that `again` gives
    monkeypatch.setattr(tune_underway, "try_pair", lambda *given: replace(trial(*given), verdict="inconclusive"))
    record = record_in(tmp_path)
    record.write_text("".join(line for line in record.read_text().splitlines(keepends=True) if '"confirm/' not in line))
    (found,) = again()
    assert isinstance(found, Tuning)
    assert (found.answer, found.variant, found.spec) == ("nothing beats the start", "", "")
    assert "nothing that was tried is confirmed faster than stock, though with-spec may take 0." in found.sentence
    assert not {VARIANT_FILE, SPEC_FILE} & {file.name for file in (tmp_path / "tuned" / "net@cpu").iterdir()}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"budget": 0.01}, "net@cpu: the budget of 0.01 s ended before timing one candidate; 0 of "),
        ({"lowering": False}, "net@cpu: nothing that was tried is confirmed faster than stock"),
    ],
)
def test_a_search_in_which_nothing_is_timed(
    options: dict[str, Any], sentence: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made)
    (found,) = searched(out=tmp_path, **options)
    assert isinstance(found, Tuning)
    assert found.sentence.startswith(sentence)
    assert not found.variant and not (tmp_path / "net@cpu" / VARIANT_FILE).exists()


def test_a_compiler_that_hangs_eats_memory_or_lacks_a_flag_costs_one_candidate(tmp_path: Path) -> None:
    suite = tmp_path / "small.toml"
    suite.write_text(
        SMALL.replace('[variants.tiled]\nflagsets = ["tiling"]\n', "").replace('flagset_files = ["flags.toml"]\n', "")
    )
    # The scripted tools give three values, 1, 2 and 3, whatever the program is.
    (tmp_path / "net.mlir").write_text(
        "func.func @main(%a: tensor<4xf32>) -> tensor<3xf32> {\n"
        "  %r = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>\n  return %r : tensor<3xf32>\n}\n"
    )
    tools = make_fake_toolchain(tmp_path / "tools")
    loaded = load_suite(suite).suite
    options = TuneOptions(suite, compile_memory_gib=0.3)
    target = TuneTarget(suite=loaded, model="net", device="cpu", start="stock", config=CompileConfig(), toolchain=tools)
    directory = TuneDirectory.create(tmp_path / "net@cpu", Begun(created="", machine="", options={}, command=()))
    configs = {
        "hangs": CompileConfig(flags=("--fake-sleep=60",)),
        "eats": CompileConfig(flags=("--fake-allocate=400", "--fake-sleep=60")),
        "wrong": CompileConfig(flags=("--fake-code=x", "--fake-values=9,9,9")),
        "unknown": CompileConfig(flags=("--iree-no-such-flag",)),
        "right": CompileConfig(flags=("--fake-code=y",)),
    }
    with TuneUnderway(options, target, directory, Silent()) as underway:
        found = underway.compile("some", configs, seconds=5.0)
    assert [*found] == ["start", *configs]
    assert [name for name, each in found.items() if isinstance(each, Untimed) and each.late] == ["hangs"]
    reasons = {name: each.reason for name, each in found.items() if isinstance(each, Untimed)}
    assert reasons["hangs"].startswith("iree-compile") and "5 s" in reasons["hangs"]
    assert reasons["eats"].startswith("iree-compile") and "GiB" in reasons["eats"]
    assert reasons["unknown"].startswith("iree-compile") and "knows no flag --iree-no-such-flag" in reasons["unknown"]
    assert isinstance(found["wrong"], Untimed) and found["wrong"].wrong
    assert "FlatBuffer" in reasons["right"], "it went as far as a worker, which loads no scripted module"


CHANGED: Verdict = "unchanged"


@pytest.fixture
def underway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    """A spec's text is the names of its dispatches."""
    names = {4: "a", 8: "b"}
    monkeypatch.setattr(tuning, "spec_of", lambda entries: "".join(names[best.tiles["tile"][0]] for _, best in entries))
    profiled(monkeypatch, {})
    with Scripted(tmp_path, monkeypatch) as begun:
        yield begun


def profiled(monkeypatch: pytest.MonkeyPatch, factors: Mapping[str, float]) -> None:
    """What dispatches take in the whole program with a spec, beside without; 0.5 of those that are not named."""

    def turns(base: Module, head: Module, *_: object) -> object:
        names = ("a", "b", "b again", "c")
        before = Profile(calls=1, call_ns=1.0, dispatch_ns=dict.fromkeys(names, 100.0))
        after = replace(before, dispatch_ns={name: 100.0 * factors.get(name, 0.5) for name in names})
        return lambda _: (before, after)

    monkeypatch.setattr(tuning, "ProfiledTurns", turns)


def answer(underway: Scripted, single_name: str = "single") -> Answered:
    """Of a search that found `both`, of which `single` is the half that matters, and winners for `a` and `b`."""
    single = replace(underway.form(single_name, "--x"), log_ratio=math.log(0.7))
    both = replace(underway.form("both", "--x", "--y"), log_ratio=math.log(0.6))
    found = FoundForms(best=both, best_single=single, singles=(), combinations=())
    dispatches = [a_dispatch("a"), a_dispatch("b", places=("b", "b again"))]
    winners = {
        each.name: Winner(dispatch=each, root=ROOT, configuration=tile(size))
        for each, size in zip(dispatches, (4, 8), strict=True)
    }
    tuned = tuple(TunedDispatch(name=name, operation=name, places=1, share=0.4) for name in winners)
    untuned = TunedDispatch(name="c", operation="c", places=1, share=0.1, reason="it only moves data")
    search = AnswerSearch(underway, underway.form("start"), found, Rule())
    return search.answer(both, Lowered(dispatches=(*tuned, untuned), winners=winners))


def test_the_whole_with_its_winners_is_confirmed_beside_the_start_and_the_best_single_change(
    underway: Scripted,
) -> None:
    underway.ms = {"--x --y ab": 0.5}
    found = answer(underway)
    assert found.form is not None
    assert (found.answer, found.form.name, found.spec) == ("faster", "with-spec", "ab")
    assert {each.name: (each.whole, each.kept) for each in found.dispatches} == {
        "a": (0.5, True),
        "b": (0.5, True),
        "c": (None, False),
    }
    assert {each.chosen for each in found.dispatches[:2]} == {tile(4).text}, "equal operations have one configuration"
    assert [each.base for each in found.confirmations] == ["the start (stock)", "the best single change (single)"]
    assert [moment.name for moment in underway.moments] == ["with-spec", "with-spec"]


def test_a_winner_that_does_not_help_the_whole_is_dropped(underway: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    profiled(monkeypatch, {"b": 0.9, "b again": 1.09})
    underway.ms = {"--x --y a": 0.5, "--x --y ab": 0.4}
    found = answer(underway)
    assert found.form is not None
    assert (found.form.name, found.spec) == ("with-spec-kept", "a")
    b = found_in(found.dispatches, "b")
    assert (b.whole, b.kept, b.reason) == (pytest.approx(0.995), False, "it does not help the whole")


def test_where_no_winner_helps_the_whole_the_form_goes_without(
    underway: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiled(monkeypatch, {"a": 1.0, "b": 1.2, "b again": 1.2})
    found = answer(underway)
    assert found.form is not None
    assert (found.form.name, found.spec) == ("both", "")
    assert not any(each.kept for each in found.dispatches)


def test_a_device_without_a_profile_keeps_all_winners(underway: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> object:
        raise CaseError("measure", "there is no profile")

    monkeypatch.setattr(tuning, "ProfiledTurns", lambda *_: refuse)
    underway.ms = {"--x --y ab": 0.5}
    found = answer(underway)
    assert found.spec == "ab"
    assert {each.whole for each in found.dispatches} == {None}


def test_a_whole_that_is_wrong_is_taken_apart(underway: Scripted) -> None:
    wrong = Untimed(reason="output 0 differs", wrong=True)
    underway.broken = {"--x --y ab": wrong, "--x --y b": wrong}
    underway.ms = {"--x --y a": 0.5}
    found = answer(underway)
    assert found.form is not None
    assert (found.form.name, found.spec) == ("with-spec-rest", "a")
    assert found_in(found.dispatches, "b").reason == "in the whole program: output 0 differs"


def test_winners_that_are_only_wrong_together_are_left_out(underway: Scripted) -> None:
    underway.broken = {"--x --y ab": Untimed(reason="output 0 differs", wrong=True)}
    found = answer(underway)
    assert found.form is not None
    assert (found.form.name, found.spec) == ("both", "")
    assert found_in(found.dispatches, "a").reason == "together with others: output 0 differs"


def test_a_spec_that_changes_nothing_in_the_whole_is_no_variant(underway: Scripted) -> None:
    underway.code_of = lambda config: " ".join(config.flags)
    found = answer(underway)
    assert found.form is not None and found.form.name == "both"
    nothing = "in the whole program: its tuning spec changes nothing in the whole program"
    assert [each.reason for each in found.dispatches] == [nothing, nothing, "it only moves data"]


def test_what_is_not_better_than_the_best_single_change_leaves_that_as_the_answer(underway: Scripted) -> None:
    underway.ms = {"--x --y ab": 0.5}
    underway.verdicts = {("with-spec", "single"): CHANGED, ("both", "single"): "inconclusive"}
    found = answer(underway)
    assert found.form is not None
    assert (found.answer, found.form.name, found.spec) == ("faster", "single", "")
    a = found_in(found.dispatches, "a")
    assert (a.kept, a.reason) == (False, "the whole program with it was not confirmed faster")
    assert [each.verdict for each in found.confirmations] == [
        "improved",
        CHANGED,
        "improved",
        "inconclusive",
        "improved",
    ]


def test_a_form_with_a_spec_is_not_taken_for_the_plugin_tuned(underway: Scripted) -> None:
    underway.ms = {"--x --y ab": 0.5}
    found = answer(underway, "tuned")
    assert found.form is not None
    assert (found.form.name, found.spec) == ("with-spec", "ab")
    assert [each.base for each in found.confirmations] == ["the start (stock)", "the best single change (tuned)"]


def test_no_variant_without_its_confirmations(underway: Scripted) -> None:
    underway.ms = {"--x --y ab": 0.5}
    asked = [
        ("with-spec", "start"),
        ("with-spec", "single"),
        ("both", "start"),
        ("both", "single"),
        ("single", "start"),
    ]
    verdicts: tuple[Verdict, ...] = ("improved", "inconclusive")
    for combination in product(verdicts, repeat=len(asked)):
        underway.verdicts = said = dict(zip(asked, combination, strict=True))
        underway.batches.clear()
        found = answer(underway)
        confirmed = [
            name
            for name in ("with-spec", "both", "single")
            if {said[pair] for pair in asked if pair[0] == name} == {"improved"}
        ]
        assert (None if found.form is None else found.form.name) == (confirmed[0] if confirmed else None)
        assert found.answer == ("faster" if confirmed else "nothing beats the start")
        assert bool(found.spec) == (confirmed[:1] == ["with-spec"])
