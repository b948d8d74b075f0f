"""A suite -> its modules, compiled and checked by the harness itself, and what a generation needs to call them."""

import sys
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from harness.compare.pairs import Side
from harness.compare.samplers import find_module
from harness.compare.sides import toolchains_here
from harness.measure import LoadableModule
from harness.models.model import Model
from harness.progress import Terminal
from harness.report.run_report import build_report
from harness.stages.options import RunOptions
from harness.stages.run import run_suite
from harness.store.evidence import find_failure
from harness.store.run_directory import load_run
from harness.suite.cases import Selection
from harness.suite.load import load_suite

_COMPILE_LIMIT_S = 900.0
_CALL_LIMIT_S = 300.0


@dataclass(frozen=True, kw_only=True)
class Module:
    """One variant of a model, as a worker loads it.

    Attributes:
        arguments: As harness.measure.worker takes them; each has the file of its values.
    """

    model: str
    variant: str
    path: str
    function: str
    arguments: tuple[dict[str, JsonValue], ...]


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """A suite whose modules give the right outputs; those that do not are told on stderr and left out.

    Attributes:
        iree: Release and revision.
        machine: Its processor and cores.
    """

    description: str
    baseline: str
    iree: str
    machine: str
    models: tuple[Model, ...]
    modules: tuple[Module, ...]

    def of(self, model: Model) -> tuple[Module, ...]:
        """The modules of a model, the baseline first."""
        own = [one for one in self.modules if one.model == model.name]
        return tuple(sorted(own, key=lambda one: one.variant != self.baseline))


def compile_suite(suite: Path, results: Path, selection: Selection | None = None) -> Compiled:
    """Compile and check a suite as `harness run` does, without timing anything.

    Args:
        results: Folder in which the harness keeps the run.
        selection: Which of its cases; None: all.

    Raises:
        HarnessError: The suite or the toolchain cannot be used.
    """
    patterns, tags = (selection.patterns, selection.tags) if selection is not None else ((), ())
    options = RunOptions(
        suite,
        patterns=tuple(patterns),
        tags=tuple(tags),
        jobs=1,
        measure=False,
        results=results,
        compile_timeout_s=_COMPILE_LIMIT_S,
        call_timeout_s=_CALL_LIMIT_S,
    )
    with Terminal() as progress:
        path = run_suite(options, progress)
        run = load_run(path)
        side = Side(run, str(path))
        toolchains = toolchains_here([side], progress.note)
    modules = []
    for case in run.header.cases:
        failure = find_failure(case, side.evidence, timed=True)
        if failure is not None or case.skip is not None:
            sys.stderr.write(f"{case.name} is left out: {failure.message if failure else case.skip}\n")
            continue
        loadable = find_module(side, case, toolchains[side.toolchains[case.toolchain]]).loadable
        modules.append(_module(case.model, case.variant, loadable))
    report, environment = build_report(run), run.header.environment
    virtual = ", a virtual machine" if environment["machine"].get("virtual") else ""
    return Compiled(
        description=run.header.suite_description,
        baseline=run.header.baseline,
        iree=" and ".join(report.toolchains),
        machine=f"{report.cpu}, {environment['cpu'].get('logical_cores')} cores{virtual}",
        models=load_suite(suite).models,
        modules=tuple(modules),
    )


def _module(model: str, variant: str, loadable: LoadableModule) -> Module:
    return Module(
        model=model,
        variant=variant,
        path=str(loadable.module.absolute()),
        function=loadable.function,
        arguments=tuple(dict(argument) for argument in loadable.arguments),
    )
