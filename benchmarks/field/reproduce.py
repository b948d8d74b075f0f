"""Findings -> folders with plain commands, docs/field/SLUG/reproduce.sh; and whether these show what was found.

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
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from benchmarks.field.findings import Finding
from benchmarks.field.parts import KEPT, ROOT, public
from harness.cache import environments_root
from harness.compare.pairs import Side
from harness.machine.environment import capture_environment, processor
from harness.records.run import Run
from harness.report.releases import releases_of
from harness.report.run_report import build_report
from harness.stages.reproducer import write_reproducer
from harness.toolchain import get_toolchains

PAGES = ROOT / "docs" / "field"
SCRIPT = "reproduce.sh"
REPRODUCED = KEPT / "reproduced.json"
_MEDIAN = re.compile(r"_median\s+([\d.]+) (ns|us|ms|s)\b")
_UNITS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
# Larger programs are no minimal reproducers; what they show, a smaller one of the finding may.
_LARGEST_BYTES = 300_000


@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """What a script's commands gave, beside what was found."""

    slug: str
    line: str
    before: str
    after: str
    found: float  # The ratio that the harness measured
    plain: float | None  # The ratio of the medians that iree-benchmark-module printed; None: the script failed
    agrees: bool
    cpu: str
    when: str
    boot: str  # Tells two boots of a machine apart
    said: str = ""  # The last line of a script that failed


def write_script(finding: Finding, run: Run) -> bool:
    """Write the reproducer of a finding's largest case that this run measured; whether it has one."""
    side = Side(run, run.header.id)
    judged = {
        (step.line.name, public(step.before), public(step.after)): step.row
        for step in releases_of(build_report(run)).neighbours
    }
    for step in finding.steps:
        row = judged.get((step.line, step.before, step.after))
        if row is None:
            continue
        base, head = (side.cases[f"{step.line}:{release}"] for release in (step.before, step.after))
        folder = PAGES / finding.slug
        shutil.rmtree(folder, ignore_errors=True)
        _without_inputs(write_reproducer(folder, base=(side, base), head=(side, head), measured=row))
        if sum(file.stat().st_size for file in folder.iterdir()) <= _LARGEST_BYTES:
            (folder / "step.json").write_text(json.dumps(asdict(step), indent=1) + "\n")
            return True
        shutil.rmtree(folder)
    return False


_FILE = re.compile(r"--input=(?P<type>[\dx]+[a-z]+\d+=)?@(?P<file>input\d+\.(?:npy|bin))")
_LETTERS = {"float": "f", "int": "i", "uint": "ui"}


def _without_inputs(script: Path) -> None:
    """Let a script call its program with ones: what takes long does not depend on values, and files would be large."""

    def ones(found: re.Match[str]) -> str:
        if found["type"]:
            return f"--input={found['type']}1"
        values = np.load(script.parent / found["file"], mmap_mode="r")
        kind = re.sub(r"[a-z]+", lambda letters: _LETTERS.get(letters[0], letters[0]), values.dtype.name)
        return f"--input={''.join(f'{size}x' for size in values.shape)}{kind}=1"

    script.write_text(_FILE.sub(ones, script.read_text()))
    for file in script.parent.glob("input*"):
        file.unlink()


def known_results() -> list[Reproduced]:
    """What came of the scripts so far."""
    return [Reproduced(**each) for each in json.loads(REPRODUCED.read_text())] if REPRODUCED.is_file() else []


def check_scripts() -> list[Reproduced]:
    """Run every script in a fresh folder, and keep what came of it beside what earlier boots gave."""
    known = known_results()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
    for script in sorted(PAGES.glob(f"*/{SCRIPT}")):
        if not (script.parent / "step.json").is_file():
            continue
        found = _checked(script.parent, boot)
        sys.stderr.write(f"{found.slug}: found {found.found:.3g}, plain {found.plain or math.nan:.3g}\n")
        known = [each for each in known if (each.slug, each.boot) != (found.slug, boot)] + [found]
        REPRODUCED.write_text(json.dumps([asdict(each) for each in known], indent=1) + "\n")
    return known


def _checked(folder: Path, boot: str) -> Reproduced:
    step = json.loads((folder / "step.json").read_text())
    sides = step["before"], step["after"]
    toolchains = get_toolchains(sides, root=environments_root(), on_install=lambda text: print(text, file=sys.stderr))
    tools = [toolchain.python.parent for toolchain in toolchains]
    with tempfile.TemporaryDirectory() as fresh:
        place = Path(fresh) / folder.name
        shutil.copytree(folder, place)
        env = {**os.environ, "BASE": str(tools[0]), "HEAD": str(tools[1])}
        done = subprocess.run(["/bin/sh", SCRIPT], cwd=place, env=env, capture_output=True, text=True, check=False)
    medians = [float(value) * _UNITS[unit] for value, unit in _MEDIAN.findall(done.stdout)]
    plain = medians[1] / medians[0] if len(medians) == 2 else None
    found = float(step["ratio"])
    return Reproduced(
        slug=folder.name,
        line=step["line"],
        before=sides[0],
        after=sides[1],
        found=found,
        plain=plain,
        # The same direction, and at least half of the size, in the logarithm.
        agrees=plain is not None and math.log(plain) / math.log(found) > 0.5,
        cpu=processor(capture_environment()) or "",
        when=datetime.now(timezone.utc).isoformat(timespec="minutes"),
        boot=boot,
        said="" if plain is not None else (done.stderr.strip().splitlines() or ["nothing"])[-1],
    )
