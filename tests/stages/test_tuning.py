"""Searches from outside, with the real compiler and worker on one small convolution; one is made and then looked at."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.bisect.variants import CompileConfig
from harness.errors import UsageError
from harness.progress import Progress
from harness.records.bisection import Trial
from harness.records.tuning import Tuning
from harness.stages import tune_session, tuning_lowering
from harness.stages.options import TuneOptions
from harness.stages.tune_session import TuneSession, Untimed
from harness.stages.tuning import NoStart, tune
from harness.store.files import adapter
from harness.store.folders import TUNING
from harness.store.work_directory import RECORD_FILE, SPEC_FILE, VARIANT_FILE
from harness.suite.load import load_suite
from harness.tune import tiles
from tests.builders import CPU_FLAGS
from tests.conftest import MadeOnce
from tests.stages.conftest import AT_END, lay_out_suite
from tests.stages.tuned import a_directory, a_target

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
# Instead of parts of the small suite's text.
CHANGES = {
    'flagset_files = ["flags.toml"]\n': "",
    '[variants.tiled]\nflagsets = ["tiling"]\n': "",
    "[models.net]": '[models.broken]\nmlir = "broken.mlir"\nfunction = "main"\ninputs = []\n\n[models.net]',
    "[{ shape = [4] }]": '[{ shape = [1, 32, 64, 32] }, { shape = [3, 3, 32, 64] }]\ncheck = "none"',
    '["--iree-hal-target-device=local"]': f"{list(CPU_FLAGS)}",
}
ONLY_OURS = ("[!i]*", "i[!s]*", "isolate.*")


def searched(**options: Any) -> list[Tuning | NoStart]:
    given: dict[str, Any] = {"models": ("net",), "budget": 400.0, "without": ONLY_OURS, **options}
    return list(tune(TuneOptions(Path("suite.toml"), **given), ("harness", "tune"), Progress(), lambda _: {}))


def in_one_round(patch: pytest.MonkeyPatch) -> None:
    """Try six configurations and no neighbour of the best."""
    first = tiles.first_configurations
    patch.setattr(tuning_lowering, "first_configurations", lambda *given: first(*given)[:6])
    patch.setattr(tuning_lowering, "neighbours", lambda *_: ())


@pytest.fixture(scope="session")
def made(made_once: MadeOnce) -> Path:
    """A folder with a suite and, in `tuned`, a search."""

    def make(folder: Path) -> None:
        (folder / "broken.mlir").write_text("func.func @main() { no_such.operation }")
        with pytest.MonkeyPatch.context() as patch:
            in_one_round(patch)
            patch.chdir(folder)
            lay_out_suite(CHANGES, program=CONVOLUTION)
            searched()

    return made_once("tuned", make)


Again = Callable[..., list[Tuning | NoStart]]


@pytest.fixture
def again(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Again:
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
    monkeypatch.setattr(tune_session, "try_pair", lambda *_: trial)
    return searched


def test_a_convolution_is_tuned_and_the_variant_goes_into_any_suite(made: Path, tmp_path: Path) -> None:
    folder = made / "tuned" / "net@cpu"
    found = TUNING.load(folder)
    assert found.answer == "faster", found.sentence
    (convolution,) = found.dispatches
    assert convolution.kept and convolution.whole is not None and convolution.whole < 1
    assert {each.head for each in found.confirmations if each.verdict == "improved"} == {"with-spec"}
    assert "lowering_config" in found.spec
    assert found.settings["out"] == "tuned", "by which a page says where the variant lies"
    assert (folder / SPEC_FILE).read_text() == found.spec
    assert found.by_hand and found.spent_s == pytest.approx(sum(found.stages.values()), abs=0.5)
    shutil.copytree(made, tmp_path / "copy", symlinks=True)
    suite = tmp_path / "copy" / "suite.toml"
    suite.write_text(f'variant_files = ["tuned/net@cpu/{VARIANT_FILE}"]\n{suite.read_text()}')
    tuned = next(each for each in load_suite(suite).variants if each.name == "tuned-net")
    assert [use.name for use in tuned.plugins] == ["isolate", "tuning-spec"]
    assert found.spec in str(tuned.plugins[1].options["spec"])


def test_a_second_call_plays_back_and_measures_nothing(
    again: Again, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> object:
        raise AssertionError("this is known")

    for name in ("measured", "try_pair", "run_suite"):
        monkeypatch.setattr(tune_session, name, refuse)
    for name in ("profile_module", "time_module"):
        monkeypatch.setattr(tuning_lowering, name, refuse)
    folder = tmp_path / "tuned" / "net@cpu"
    before = [(folder / name).read_bytes() for name in (RECORD_FILE, TUNING.file)]
    assert again() == [TUNING.load(folder)]
    assert [(folder / name).read_bytes() for name in (RECORD_FILE, TUNING.file)] == before


def test_a_model_that_cannot_be_measured_leaves_the_others_alone_and_another_search_is_refused(again: Again) -> None:
    broken, found = again(models=())
    assert isinstance(broken, NoStart) and isinstance(found, Tuning)
    assert str(broken).startswith("broken/stock@cpu cannot be measured ([models.broken] mlir: ")
    with pytest.raises(UsageError, match=r"--out: .*net@cpu is a search with another floor and another seed; give the"):
        again(floor=0.5, seed=3)
    lay_out_suite({**CHANGES, "local-sync": "local-task"}, program=CONVOLUTION)
    with pytest.raises(UsageError, match=r"is a search with another \[devices\.cpu\]; give the"):
        again()
    lay_out_suite({**CHANGES, AT_END: 'description = "no matter"\n'}, program=f"{CONVOLUTION}// edited\n")
    with pytest.raises(UsageError, match="is a search with another model file; give the"):
        again()


def test_a_compiler_that_hangs_eats_memory_or_lacks_a_flag_costs_one_candidate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # The scripted tools give three values, 1, 2 and 3, whatever the program is.
    values = "%r = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32> return %r : tensor<3xf32>"
    suite = lay_out_suite(program=f"func.func @main(%a: tensor<4xf32>) -> tensor<3xf32> {{ {values} }}")
    options, target = TuneOptions(suite, compile_memory_gib=0.3), a_target(tmp_path, load_suite(suite))
    flags = {
        "hangs": ("--fake-sleep=60",),
        "eats": ("--fake-allocate=400", "--fake-sleep=60"),
        "wrong": ("--fake-code=x", "--fake-values=9,9,9"),
        "unknown": ("--iree-no-such-flag",),
    }
    with a_directory(tmp_path) as directory:
        configs = {name: CompileConfig(flags=each) for name, each in flags.items()}
        found = TuneSession(options, target, directory, Progress()).compile("some", configs, seconds=5.0)
    assert [*found] == ["start", *configs]
    untimed = {name: each for name, each in found.items() if isinstance(each, Untimed)}
    assert [(name, each.late, each.wrong) for name, each in untimed.items() if each.late or each.wrong] == [
        ("hangs", True, False),
        ("wrong", False, True),
    ]
    for name, said in {"hangs": "5 s", "eats": "GiB", "unknown": "knows no flag --iree-no-such-flag"}.items():
        assert untimed[name].reason.startswith("iree-compile") and said in untimed[name].reason
