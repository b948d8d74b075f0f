"""What `harness plot` does, once its arguments are parsed."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.errors import ExitCode, RunError, UsageError
from harness.plots.points import panels_of
from harness.plots.roofline import Format, draw_roofline
from harness.report.table import build_report
from harness.report.words import one_line
from harness.results.store import load_run


def plot_command(path: Path, out: Path) -> int:
    """`harness plot --kind roofline`: a picture of a run, in the format that the file's name ends in."""
    picture = _format(out)
    report = build_report(load_run(path))
    panels = panels_of(report, str(path))
    facts = report.facts
    iree = (f"IREE {toolchain}" for toolchain in facts.toolchains)
    subtitle = ", ".join(one_line(part) for part in (facts.started[:10], facts.cpu, *iree) if part)
    content = draw_roofline(panels, one_line(facts.suite_name), subtitle, picture)
    try:
        out.write_bytes(content)
    except OSError as error:
        raise RunError(f"{out}: cannot be written ({error.strerror}); give another path with --out") from None
    sys.stderr.write(f"{out}\n")
    return ExitCode.OK


def _format(out: Path) -> Format:
    known: dict[str, Format] = {".svg": "svg", ".png": "png"}
    if out.suffix.lower() not in known:
        raise UsageError(f"--out {out}: does not end in {' or '.join(known)}; name a file that does")
    return known[out.suffix.lower()]
