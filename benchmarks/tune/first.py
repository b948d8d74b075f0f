"""First answers: cold searches of three minutes for a small program, and how near each comes to the best O-level.

Each search has an empty cache folder of its own, as when somebody tries `harness tune` for the first time. Afterwards
what they wrote is measured beside the compiler's own levels, all in the same rounds of fresh processes.
"""

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from benchmarks.tune.measuring import Measuring, finished_in
from benchmarks.tune.outcomes import machine_of, measured
from benchmarks.tune.searches import DEVICE
from harness.machine.environment import instruction_set
from harness.progress import duration
from harness.records.run import Run
from harness.records.tuning import Tuning
from harness.report.markdown import blocks, escape, table
from harness.report.units import interval_text, share
from harness.stats.intervals import Estimate
from harness.store.folders import TUNING

_MODEL, _FOLDER = "softmax-matmul", "first-answers"
PROGRAM = """\
func.func @main(%a: tensor<256x512xf32>, %b: tensor<512x256xf32>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %rows = tensor.empty() : tensor<256x512xf32>
  %softmax = linalg.softmax dimension(1) ins(%a : tensor<256x512xf32>) outs(%rows : tensor<256x512xf32>)
      -> tensor<256x512xf32>
  %empty = tensor.empty() : tensor<256x256xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<256x256xf32>) -> tensor<256x256xf32>
  %product = linalg.matmul ins(%softmax, %b : tensor<256x512xf32>, tensor<512x256xf32>)
      outs(%filled : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %product : tensor<256x256xf32>
}
"""
_COMPILE_FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)
_LEVELS: dict[str, Any] = {name: {"flags": [f"--iree-opt-level={name}"]} for name in ("O1", "O2", "O3")}
_LEVELS["data-tiling"] = {"flags": ["--iree-dispatch-creation-data-tiling"]}
_STOCK = "stock"
# So near the best level a search has to come.
_NEAR = 1.05
_USUAL: dict[str, Any] = {"searches": 10, "budget": "3m", "generations": 12, "beside_s": 240}
_QUICK: dict[str, Any] = {"searches": 2, "budget": "1m", "generations": 2, "beside_s": 10}


@dataclass(frozen=True, kw_only=True)
class FirstAnswers:
    """What the searches found.

    Attributes:
        run: Everything that they wrote, beside the levels.
        tunings: Of the searches, in order.
    """

    run: Run
    tunings: Sequence[Tuning]


def measure_first(measuring: Measuring, *, quick: bool) -> None:
    """Search, then measure what was found; what is there is not made again."""
    folder = measuring.out / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{_MODEL}.mlir").write_text(PROGRAM)
    terms = _QUICK if quick else _USUAL
    suite = suite_of(folder / "suite.toml", {})
    for number in range(1, terms["searches"] + 1):
        if TUNING.is_at(_tuned(folder, number)):
            continue
        shutil.rmtree(folder / f"{number}", ignore_errors=True)  # a search that was stopped is not cold any more
        with tempfile.TemporaryDirectory(prefix="harness-cold-") as cache:
            words = ["tune", str(suite), "--budget", terms["budget"], "--out", str(folder / f"{number}")]
            measuring.call(words, {"HARNESS_CACHE": cache})
    if finished_in(folder / "beside") is None:
        found = {f"search-{number}": _variant(each) for number, each in enumerate(_tunings(folder), 1) if each.variant}
        words = ["run", str(suite_of(folder / "beside.toml", found)), "--results", str(folder / "beside")]
        measuring.call([*words, "--generations", f"{terms['generations']}", "--budget", f"{terms['beside_s']}"])


def measured_first(measuring: Measuring) -> FirstAnswers | None:
    """What `measure_first` found; None: nothing yet."""
    folder = measuring.out / _FOLDER
    run = finished_in(folder / "beside")
    return FirstAnswers(run=run, tunings=_tunings(folder)) if run is not None else None


def marks(found: FirstAnswers) -> tuple[str, str]:
    """What a document has around the table of processors with these vectors."""
    return marks_of(instruction_set(found.run.header.environment).partition(" ")[0] or "vectors unknown")


def marks_of(vectors: str) -> tuple[str, str]:
    """The same, of these vectors."""
    part = f"--part first-answers, {vectors}"
    return f"<!-- made by `python -m benchmarks.tune`, {part}: begin -->", f"<!-- benchmarks.tune, {part}: end -->"


def render_first(found: FirstAnswers) -> str:
    """The searches, a line each, and above them how many came near the best level."""
    run, tunings = found.run, found.tunings
    levels = {name: ratio for name in _LEVELS if (ratio := _beside(run, name, _STOCK)) is not None}
    best = min(levels, key=lambda name: levels[name].ratio)
    rows, near = [], 0
    for number, tuning in enumerate(tunings, 1):
        ratio = _beside(run, f"search-{number}" if tuning.variant else _STOCK, best)
        near += ratio is not None and ratio.ratio <= _NEAR
        tried = sum(each.standing != "untried" for each in tuning.singles)
        rows.append(
            [
                f"{number}",
                ", ".join(f"`{part}`" for part in tuning.parts) or tuning.answer,
                f"{sum(dispatch.kept for dispatch in tuning.dispatches)}",
                f"{tried} of {len(tuning.singles)}",
                f"{tuning.spent_s:.0f}",
                "-" if ratio is None else interval_text(ratio.ratio, ratio.low, ratio.high),
            ]
        )
    titles = ["search", "its answer", "dispatches tuned", "changes tried", "seconds", f"of the time of `{best}`"]
    of_stock = ", ".join(f"`{name}` {interval_text(each.ratio, each.low, each.high)}" for name, each in levels.items())
    return blocks(
        f"{near} of {len(rows)} cold searches of {duration(tunings[0].budget_s)} find a variant within "
        f"{share(_NEAR - 1)} of the best of the compiler's own levels. Of stock's time these take {of_stock}. Measured "
        f"{run.header.started[:10]} on {escape(machine_of(run))}.",
        table(titles, rows, numbers=[True, False, True, True, True, True]),
    )


def _beside(run: Run, head: str, base: str) -> Estimate | None:
    """The time of a variant divided by another's; None: one of them was not timed."""
    return next((each.ratio for each in measured(run, head)[0] if each.name == base), None)


def _tuned(folder: Path, number: int) -> Path:
    return folder / f"{number}" / f"{_MODEL}@{DEVICE}"


def _tunings(folder: Path) -> list[Tuning]:
    folders = (_tuned(folder, number) for number in range(1, _USUAL["searches"] + 1))
    return [TUNING.load(each) for each in folders if TUNING.is_at(each)]


def _variant(found: Tuning) -> dict[str, Any]:
    plugins = [{"name": name, "options": options} for name, options in found.plugins]
    return {"flags": list(found.flags), "run_flags": list(found.run_flags), "plugins": plugins}


def suite_of(file: Path, variants: dict[str, Any]) -> Path:
    """Write the program's suite: stock, and where there are variants, the levels and these."""
    table: dict[str, Any] = {
        "name": _FOLDER,
        "baseline": _STOCK,
        "models": {
            _MODEL: {
                "mlir": f"{_MODEL}.mlir",
                "function": "main",
                "inputs": [{"shape": shape, "dtype": "f32"} for shape in ([256, 512], [512, 256])],
            }
        },
        "variants": {_STOCK: {}, **(_LEVELS if variants else {}), **variants},
        "devices": {
            DEVICE: {"uri": "local-sync", "backend": "llvm-cpu", "compile_flags": list(_COMPILE_FLAGS), "pin": True}
        },
    }
    file.write_text(tomli_w.dumps(table))
    return file
