"""Pairs -> what `harness explain` says of each, one JSON line a pair; a pair that has a line is not explained again."""

import json
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from benchmarks.explain.pairs import Pair, Programs, Releases, Variant
from benchmarks.explain.programs import Program
from harness import process
from harness.cache import environments_root
from harness.measure.session import only_one_measures
from harness.progress import Terminal
from harness.records.explanation import Explanation
from harness.stages.options import RunOptions
from harness.stages.run import run_suite
from harness.store.folders import EXPLANATION
from harness.toolchain import get_toolchains

ROOT = Path(__file__).parents[2]
STOCK, DEVICE = "stock", "cpu"
HARNESS = Path(sys.executable).with_name("harness")

_CPU = {
    "uri": "local-sync",
    "backend": "llvm-cpu",
    "compile_flags": [
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=host",
    ],
    "pin": True,
}
_LIMITS = process.Limits(seconds=3600.0)


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """What became of a pair.

    Attributes:
        seconds: Wall time of the whole command.
        load: The machine's load average over the last minute, as it ended.
    """

    pair: str
    seconds: float
    load: float
    explanation: Explanation


def read(path: Path) -> dict[str, Recorded]:
    """All that was recorded, by name of the pair."""
    lines = map(json.loads, path.read_text().splitlines()) if path.is_file() else []
    return {
        line["pair"]: Recorded(
            pair=line["pair"],
            seconds=line["seconds"],
            load=line["load"],
            explanation=EXPLANATION.parse(json.dumps(line["explanation"]), str(path)),
        )
        for line in lines
    }


def record(pairs: Sequence[Pair], path: Path, *, budget_s: float, wait: bool) -> list[str]:
    """Compile all pairs that have no line yet, then explain them.

    Args:
        path: Of the lines; suites, runs and explanations go into a folder beside it.
        budget_s: Of looking, of each pair.
        wait: Whether to wait while another harness measures on this machine.

    Returns:
        Why pairs could not be explained, one sentence each.
    """
    left = [pair for pair in pairs if pair.name not in read(path)]
    folder = path.with_suffix("")
    commands = _commands(left, folder)
    failed = []
    with only_one_measures(print, wait=wait):  # here, so that the seconds of a pair have no waiting in them
        for number, pair in enumerate(left):
            sys.stderr.write(f"{number + 1} of {len(left)}: {pair.name}\n")
            options = ["--budget", f"{budget_s:g}", "--results", str(folder / "explanations"), "--format", "json"]
            command = [str(HARNESS), "explain", *commands[pair.name], *options, "--quiet", "--no-wait"]
            started = time.monotonic()
            done = process.run(command, cwd=ROOT, limits=_LIMITS)
            seconds = time.monotonic() - started
            if done.ok:
                line = {"pair": pair.name, "seconds": seconds, "load": os.getloadavg()[0]}
                with path.open("a") as file:
                    file.write(json.dumps({**line, "explanation": json.loads(done.stdout)}) + "\n")
            else:
                failed.append(f"{pair.name} is not explained: {done.stderr.strip()[-2000:]}")
    return failed


# --- what is explained ---


def _commands(pairs: Iterable[Pair], folder: Path) -> dict[str, list[str]]:
    """What says each pair's sides and case to `harness explain`; both are compiled here, so that none waits for it."""
    programs: dict[str, dict[str, Programs]] = {}
    variants: dict[str, Variant] = {}
    commands: dict[str, list[str]] = {}
    for pair in pairs:
        if isinstance(pair.sides, Programs):
            programs.setdefault(pair.sides.toolchain, {})[pair.name] = pair.sides
        elif isinstance(pair.sides, Variant):
            variants[pair.name] = pair.sides
        else:
            commands[pair.name] = _of_releases(pair.sides)
    for toolchain, sides in programs.items():
        base = _compile({name: two.base for name, two in sides.items()}, folder / f"base{toolchain}", toolchain)
        head = _compile({name: two.head for name, two in sides.items()}, folder / f"head{toolchain}", toolchain)
        commands |= {name: [str(base), str(head), f"{name}/{STOCK}@{DEVICE}"] for name in sides}
    if variants:
        run = _compile({name: one.program for name, one in variants.items()}, folder / "variants", variants=variants)
        commands |= {name: ["--within", str(run), f"{name}/{name}@{DEVICE}"] for name in variants}
    return commands


def _of_releases(sides: Releases) -> list[str]:
    return [f"iree=={sides.base}", f"iree=={sides.head}", sides.case, "--suite", sides.suite]


def _compile(
    programs: Mapping[str, Program], folder: Path, toolchain: str = "", variants: Mapping[str, Variant] | None = None
) -> Path:
    """A run of a suite of these programs, in which nothing is timed.

    Args:
        folder: Of the suite, and of the run.
        variants: One of each program, which it is compiled with too.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, program in programs.items():
        (folder / f"{name}.mlir").write_text(program.mlir)
    suite = folder / "suite.toml"
    suite.write_bytes(tomli_w.dumps(_suite(folder.name, programs, variants or {})).encode())
    with Terminal() as progress:
        named = [toolchain] if toolchain else []
        toolchains = get_toolchains(named, root=environments_root(), on_install=progress.note)
        options = RunOptions(suite, measure=False, results=folder / "results")
        return run_suite(options, progress, toolchains, with_reference=False)


def _suite(name: str, programs: Mapping[str, Program], variants: Mapping[str, Variant]) -> dict[str, Any]:
    return {
        "name": name,
        "baseline": STOCK,
        "models": {
            # Nothing else computes these, and it is not their results that are asked for.
            model: {"mlir": f"{model}.mlir", "function": "main", "inputs": program.inputs, "check": "none"}
            for model, program in programs.items()
        },
        "variants": {STOCK: {}, **{variant: dict(of.table) for variant, of in variants.items()}},
        "devices": {DEVICE: _CPU},
        "matrix": {"include": [f"*/{STOCK}@*", *(f"{variant}/{variant}@*" for variant in variants)]},
    }
