"""Findings -> folders with plain commands, SLUG/reproduce.sh beside the pages; and whether these show what was found.

Each script is copied to a fresh folder and run there with the releases' own tools, without the harness.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.field.findings import Fault, Finding
from benchmarks.field.parts import FLOOR, KEPT, PAGES, RESULTS, SUITE, harness, public, read_json, write_json
from harness.cache import environments_root
from harness.compare.judge import CHANGED
from harness.compare.pairs import Side
from harness.compare.samplers import find_model
from harness.machine.environment import capture_environment, processor
from harness.metrics import LATENCY
from harness.models.inputs import Argument, load_argument
from harness.records.comparison import Row
from harness.records.run import Run
from harness.report.releases import releases_of
from harness.report.run_report import build_report
from harness.stages.reproducer import write_reproducer
from harness.store.evidence import find_failure
from harness.store.folders import COMPARISON, folder_names
from harness.toolchain import get_toolchains

SCRIPT, FACTS = "reproduce.sh", "step.json"
SHORT = "model.short.mlir"  # Its program without its weights
REPRODUCED = KEPT / "reproduced.json"
_MEDIAN = re.compile(r"_median\s+([\d.]+) (ns|us|ms|s)\b")
_UNITS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
# Larger programs are no minimal reproducers; what they show, a smaller one of the finding may.
_LARGEST_BYTES = 300_000
_LARGEST_INPUT_BYTES = 20_000
_LARGEST_WRONG_BYTES = 2_500_000  # With the inputs and outputs that tell


@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """What a script's commands gave, beside what was found."""

    slug: str
    line: str
    before: str
    after: str
    found: float | None  # The ratio that the harness measured; None of a fault
    plain: float | None  # The ratio of the medians that iree-benchmark-module printed; None: the script failed
    agrees: bool
    cpu: str
    when: str
    boot: str  # Tells two boots of a machine apart
    said: str = ""  # The last line of a script that failed
    # Where the commands show no such step: what the harness measures on that boot, with its interval and verdict
    here: tuple[float, float, float] | None = None
    verdict: str = ""

    @property
    def is_found_here(self) -> bool:
        """Whether the harness finds half of it there, which the commands do not show."""
        return self.here is not None and self.verdict in CHANGED and _agrees(self.here[0], self.found or math.nan)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A part's run, and its judged neighbours by line and releases."""

    side: Side
    judged: Mapping[tuple[str, str, str], Row]


def measured(run: Run) -> Measured:
    """A run, judged once."""
    steps = releases_of(build_report(run)).neighbours
    judged = {(step.line.name, public(step.before), public(step.after)): step.row for step in steps}
    return Measured(side=Side(run, run.header.id), judged=judged)


def write_script(finding: Finding, runs: Sequence[Measured]) -> bool:
    """Write what shows a finding's largest case that is small enough; whether it has one."""
    for step in finding.steps:
        key = step.line, step.before, step.after
        run = next((run for run in runs if key in run.judged), None)
        if run is None:
            continue
        side = run.side
        base, head = (side.cases[f"{step.line}:{release}"] for release in (step.before, step.after))
        folder = PAGES / finding.slug
        shutil.rmtree(folder, ignore_errors=True)
        script = write_reproducer(folder, base=(side, base), head=(side, head), measured=run.judged[key])
        draw_inputs(script, find_model(side, base)[1])
        shorten_weights(script)
        if _keep_small(folder, asdict(step), _LARGEST_BYTES):
            return True
    return False


def write_fault_script(fault: Fault, run: Measured) -> bool:
    """Write what shows a fault on the first of its lines that this run has, beside a release without it."""
    side = run.side
    for line, releases in fault.lines.items():
        head = side.cases.get(f"{line}:{releases[-1]}")
        if head is None:
            continue
        good = [
            case
            for name, case in side.cases.items()
            if name.startswith(f"{line}:")
            and "+" not in case.toolchain
            and case.skip is None
            and find_failure(case, side.evidence, timed=True) is None
        ]
        folder = PAGES / fault.slug
        shutil.rmtree(folder, ignore_errors=True)
        script = write_reproducer(folder, base=(side, good[-1]) if good else None, head=(side, head))
        failure = find_failure(head, side.evidence, timed=True)
        if failure is not None and failure.stage == "compile":  # which takes no inputs
            for file in folder.glob("input*"):
                file.unlink()
        elif fault.state == "fails":
            draw_inputs(script, find_model(side, head)[1])
        if fault.state == "fails":
            shorten_weights(script)
        before = good[-1].toolchain if good else ""
        facts = {"line": line, "before": before, "after": releases[-1], "state": fault.state}
        if _keep_small(folder, facts, _LARGEST_WRONG_BYTES):
            return True
    return False


_LETTERS = {"f16": "e", "f32": "f", "f64": "d", "i8": "b", "i16": "h", "i32": "i", "i64": "q"}  # Of struct.pack
_DRAW = """
# Inputs with the mean and the spread of those that it was measured with, drawn anew.
"${{PYTHON:-python3}}" - <<'END'
import random, struct

random.seed(0)
{lines}
END
"""


_WHOLE = """
# Its weights repeat their first 512 bytes, so that they need not lie beside it.
"${PYTHON:-python3}" - <<'END'
import re

whole = lambda found: f'"0x{found[1]}{(found[2] * (int(found[3]) // 512 + 1))[: 2 * int(found[3])]}"'
short = open('model.short.mlir').read()
open('model.mlir', 'w').write(re.sub(r'"0x(\\w{8})(\\w{1024})[+](\\d+)"', whole, short))
END
"""
_WEIGHTS = re.compile(r'"0x(\w{8})(\w{1024})(\w{1024,})"')  # Of a resource: its alignment, then its bytes


def shorten_weights(script: Path) -> None:
    """Let a script make the large weights of its program anew, so that they need not lie in its text."""
    program = script.with_name("model.mlir")
    try:
        text = program.read_text()
    except UnicodeDecodeError:  # bytecode
        return
    short, count = _WEIGHTS.subn(lambda found: f'"0x{found[1]}{found[2]}+{512 + len(found[3]) // 2}"', text)
    if count:
        program.unlink()
        program.with_name(SHORT).write_text(short)
        _begin_with(script, script.read_text(), _WHOLE)


def shows(finding: Finding) -> bool:
    """Whether a script is there, of one of its steps."""
    is_there = (PAGES / finding.slug / SCRIPT).is_file()
    return is_there and _shown(finding.slug) in {(step.line, step.before, step.after) for step in finding.steps}


def _shown(slug: str) -> tuple[str, str, str] | None:
    """Of what a script is: the line, and its two releases."""
    told = read_json(PAGES / slug / FACTS)
    return (told["line"], told["before"], told["after"]) if told else None


def draw_inputs(script: Path, arguments: Sequence[Argument]) -> None:
    """Let a script draw the large inputs of its program, so that their files need not lie beside it."""
    text, drawn = script.read_text(), []
    for argument in arguments:
        file = script.parent / argument.file.name
        if file.is_file() and file.stat().st_size > _LARGEST_INPUT_BYTES:
            raw, shape = f"{file.stem}.bin", "".join(f"{size}x" for size in argument.shape)
            if (drawing := _drawing(argument)) is not None:
                typed = f"{shape}{argument.dtype}=@"
                written = f"{typed}{file.name}" if argument.dtype == "bf16" else f"@{file.name}"
                text = text.replace(f"--input={written} ", f"--input={typed}{raw} ")
                text = text.replace(f"--input={written}\n", f"--input={typed}{raw}\n")
                drawn.append(f"open('{raw}', 'wb').write({drawing})")
                file.unlink()
    if drawn:
        _begin_with(script, text, _DRAW.format(lines="\n".join(drawn)))


def _begin_with(script: Path, text: str, commands: str) -> None:
    """Write a script, with what it does first once it is in its folder."""
    place = 'cd "$(dirname "$0")"\n'
    script.write_text(text.replace(place, place + commands))


def _drawing(argument: Argument) -> str | None:
    """An expression of Python for an input's elements as little-endian bytes; None where no draw is like them."""
    held, count = load_argument(argument), math.prod(argument.shape)
    if argument.dtype not in (*_LETTERS, "bf16") or not np.isfinite(held).all():
        return None
    values = held.astype(np.float64)
    one = f"random.gauss({np.mean(values):.1g}, {np.std(values):.2g})"
    if held.dtype.kind in "iu":
        one = f"random.randint({held.min()}, {held.max()})"
    if argument.dtype == "bf16":  # the upper half of f32
        return f"b''.join(struct.pack('<f', {one})[2:] for _ in range({count}))"
    return f"struct.pack('<{count}{_LETTERS[argument.dtype]}', *({one} for _ in range({count})))"


def _keep_small(folder: Path, facts: Mapping[str, object], most_bytes: int) -> bool:
    """Keep a reproducer with what it shows; one that is larger goes, since it is not minimal."""
    if sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) > most_bytes:
        shutil.rmtree(folder)
        return False
    (folder / FACTS).write_text(json.dumps(facts, indent=1) + "\n")
    return True


def known_results() -> list[Reproduced]:
    """What came so far of the scripts that are there."""
    kept = read_json(REPRODUCED) or []
    found = [Reproduced(**{**each, "here": tuple(each["here"]) if each.get("here") else None}) for each in kept]
    return [each for each in found if _shown(each.slug) == (each.line, each.before, each.after)]


def check_scripts() -> list[Reproduced]:
    """Run every script in a fresh folder, and keep what came of it beside what earlier boots gave."""
    known = known_results()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
    for script in sorted(PAGES.glob(f"*/{SCRIPT}")):
        if not (script.parent / FACTS).is_file():
            continue
        found = _checked(script.parent, boot)
        if found.plain is not None and not found.agrees:
            found = _judged_now(found)
        ratios = f", found {found.found:.3g}, plain {found.plain or math.nan:.3g}" if found.found else ""
        ratios += f", harness now {found.here[0]:.3g}" if found.here else ""
        sys.stderr.write(f"{found.slug}: {'agrees' if found.agrees else 'DOES NOT AGREE'}{ratios}\n")
        known = [each for each in known if (each.slug, each.boot) != (found.slug, boot)] + [found]
        write_json(REPRODUCED, [asdict(each) for each in known])
    return known


def _checked(folder: Path, boot: str) -> Reproduced:
    facts = read_json(folder / FACTS)
    sides = [release for release in (facts["before"], facts["after"]) if release]
    toolchains = get_toolchains(sides, root=environments_root(), on_install=lambda text: print(text, file=sys.stderr))
    with tempfile.TemporaryDirectory() as fresh:
        place = Path(fresh) / folder.name
        shutil.copytree(folder, place)
        tools = [str(toolchain.python.parent) for toolchain in toolchains]
        env = {**os.environ, "BASE": tools[0], "HEAD": tools[-1]}
        done = subprocess.run(["/bin/sh", SCRIPT], cwd=place, env=env, capture_output=True, text=True, check=False)
    plain, agrees = shown(facts, done.stdout, done.returncode)
    return Reproduced(
        slug=folder.name,
        line=facts["line"],
        before=facts["before"],
        after=facts["after"],
        found=facts.get("ratio"),
        plain=plain,
        agrees=agrees,
        cpu=processor(capture_environment()) or "",
        when=datetime.now(timezone.utc).isoformat(timespec="minutes"),
        boot=boot,
        said="" if agrees or plain is not None else (done.stderr.strip().splitlines() or ["nothing"])[-1],
    )


def _judged_now(found: Reproduced) -> Reproduced:
    """With what the harness measures of the step on this boot."""
    before = set(folder_names(RESULTS, "comparison"))
    sides = [f"iree=={found.before}", f"iree=={found.after}", "--suite", SUITE, "--filter", found.line]
    harness("compare", *sides, "--floor", str(FLOOR), "--results", str(RESULTS), "--format", "csv", quiet=True)
    for folder in set(folder_names(RESULTS, "comparison")) - before:
        for row in COMPARISON.load(RESULTS / folder).rows:
            if row.metric == LATENCY.name and row.ratio and row.ci_low and row.ci_high:
                return replace(found, here=(row.ratio, row.ci_low, row.ci_high), verdict=row.verdict)
    return found


def shown(facts: Mapping[str, Any], printed: str, status: int) -> tuple[float | None, bool]:
    """The ratio of the medians that a script printed, and whether what it was written for shows."""
    if "ratio" not in facts:  # The release that is at fault is told last, behind one that is not.
        mark = "[FAILED]" if facts["state"] == "wrong" else "ended with status"
        good, _, bad = printed.rpartition(f"== IREE {facts['after']}\n")
        return None, mark in bad and mark not in good
    medians = [float(value) * _UNITS[unit] for value, unit in _MEDIAN.findall(printed)]
    base, head = medians[::2], medians[1::2]
    if status or not head:
        return None, False
    plain = median(head) / median(base)
    return plain, _agrees(plain, facts["ratio"])


def _agrees(ratio: float, found: float) -> bool:
    """The same direction, and at least half of the size, in the logarithm."""
    return math.log(ratio) / math.log(found) > 0.5
