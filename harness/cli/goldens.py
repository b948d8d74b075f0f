"""`harness goldens`: golden times, and what they are worth."""

from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from harness.cli.app import app
from harness.cli.output import emit, print_text, reporter
from harness.cli.run import run_one
from harness.errors import UsageError
from harness.history.goldens import goldens_page, propose, runs_of, written
from harness.history.series import open_history
from harness.machine.environment import machine_class
from harness.options import PageFormat, Positive, command_options
from harness.report.data import to_json
from harness.report.run_report import build_report
from harness.stages.options import RunOptions
from harness.store.run_directory import load_run
from harness.suite.load import load_suite
from harness.toolchain.host_cpu import environment_here


@command_options
@dataclass(frozen=True)
class GoldensOptions(RunOptions):
    """What a user can choose about golden times, and about the run that they are taken from.

    Attributes:
        measure: Run the suite now; else take its runs that --results has, on machines such as this one and under the
            latest toolchain there. Then the suite's name will do.
        tolerance_factor: With which IREE's gate is tried.
        out: Also write them into this file: a configuration of torch_ops, the JSON of a benchmark of torch_models, or a
            .toml file of gates of a suite; repeatable.
        format: How to print them.
    """

    _: KW_ONLY
    tolerance_factor: Positive = 1.1
    out: Annotated[tuple[Path, ...], Parameter(negative="", show_default=False)] = ()
    format: PageFormat = "terminal"


@app.command
def goldens(options: GoldensOptions | None = None) -> int:
    """Propose golden times, and say how often IREE's gate on them fails with nothing wrong.

    That gate takes the shortest of ten repetitions of one process; each generation of a run is such a process. The exit
    status is 3 where a case of the latest run failed, so that it has no golden time.
    """
    options = options or GoldensOptions()
    if options.measure or options.suite is None:
        runs = [load_run(run_one(options))]
    else:
        name = load_suite(options.suite).name if options.suite.is_file() else str(options.suite)
        results = str(options.results)
        with reporter(quiet=options.quiet) as progress, open_history(results, progress=progress) as history:
            runs = runs_of(history, name, machine_class(environment_here()))
    factor = options.tolerance_factor
    found = propose(runs, factor, options.patterns)
    if not found:
        raise UsageError(f"{options.suite}: no case that was asked for has a time; `harness report` says why")
    document = {"runs": [run.header.id for run in runs], "goldens": list(map(asdict, found))}
    emit(options.format, lambda: goldens_page(found, runs, factor), lambda: to_json(document))
    for out in options.out:
        gates = propose(runs, factor, options.patterns, medians=True) if out.suffix == ".toml" else found
        print_text(written(out, gates), out)
    return int(build_report(runs[-1]).summary.exit_code)
