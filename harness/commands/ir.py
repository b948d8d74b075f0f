"""What `harness ir` and `harness ablate` do, once their arguments are parsed."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Literal

from harness.commands.one_run import RunArguments, run_for
from harness.commands.output import Format, memory_limit, print_text, tell_where
from harness.commands.report import report_command
from harness.errors import ExitCode, UsageError
from harness.ir.op_counts import check_ops
from harness.process import Limits
from harness.progress import Terminal
from harness.report.inspected import TELLING_OPS, render_counts, render_counts_json
from harness.report.markdown import to_markdown
from harness.report.outcome import exit_code
from harness.report.run_page import ablation_page
from harness.report.table import build_report
from harness.stages.ablating import Ablation, write_ablation
from harness.stages.inspect import inspect_case
from harness.store.run_directory import load_run


def ir_command(
    suite: Path,
    case: str,
    phases: tuple[str, ...],
    ops: tuple[str, ...],
    output_format: Literal["terminal", "mlir", "json"],
    *,
    compile_timeout_s: float,
    out: Path | None,
) -> int:
    """`harness ir`: op counts by phase, or the IR of one phase."""
    phases, texts = tuple(dict.fromkeys(phases)), output_format == "mlir"
    if texts and len(phases) != 1:
        raise UsageError("--format mlir prints one phase; say which with --phase")
    if ops and output_format != "terminal":
        raise UsageError(f"--ops chooses what the table shows; leave it out with --format {output_format}")
    check_ops(ops)
    limits = Limits(seconds=compile_timeout_s, memory_bytes=memory_limit())
    with Terminal() as progress:
        inspected = inspect_case(suite, case, phases, texts=texts, limits=limits, progress=progress)
    if texts:
        print_text(inspected.texts[phases[0]], out)
    elif output_format == "json":
        print_text(render_counts_json(inspected), out)
    else:
        width = shutil.get_terminal_size((120, 24)).columns
        color = out is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
        print_text(render_counts(inspected, ops or TELLING_OPS, width=width, color=color), out)
    return ExitCode.OK


def ablate_command(suite: Path, ablation: Ablation, results: Path, output_format: Format) -> int:
    """`harness ablate`: a run of a suite that is made for it; exit status as of `harness run`."""
    path = write_ablation(suite, ablation, results)
    sys.stderr.write(f"{path}: each option as a variant; `harness run {shlex.quote(str(path))}` repeats this\n")
    run = run_for(
        RunArguments(
            suite=path,
            resume=None,
            toolchains=(),
            patterns=(),
            tags=(),
            budget_s=ablation.budget_s,
            generations=None,
            jobs=None,
            measure=True,
            seed=None,
            results=results,
            compile_timeout_s=900.0,
            compile_memory_gib=None,
            call_timeout_s=300.0,
        )
    )
    if output_format == "markdown":
        report = build_report(load_run(run))
        print_text(to_markdown(ablation_page(report)), None)
        status = int(exit_code(report.summary))
    else:
        status = report_command(run, output_format, full=False, out=None)
    tell_where(run)
    return status
