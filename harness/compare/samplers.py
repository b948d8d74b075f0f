"""Two compiled cases -> generations of one row: their modules timed in turns, or their compiles."""

import math
import shlex
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from harness import process
from harness.cache import cache_root
from harness.compare.engine import BASE, HEAD, Generation, Task
from harness.compare.pairs import Side
from harness.compile import BuildCache
from harness.compile.iree_compile import MODEL_FILE
from harness.errors import CaseError
from harness.measure import Calibration, Group, Loadable, LoadableModule, Settings, last_core, measure_generation
from harness.models.inputs import Argument
from harness.process import Limits
from harness.records.case import Case
from harness.records.run import Build, Lost, Round
from harness.stats.pairing import FloatArray, tabulate_rounds
from harness.stats.rule import Rule
from harness.toolchain import Toolchain

# Generations differ by their memory layout about as much as rounds within a quarter of a second do, and a fresh worker
# costs a tenth of a second: longer generations would narrow a row's interval no more than more of them do.
GENERATION_S = 0.25
# A round that takes longer is the only one of its generation: a second one would say less than the next generation.
LONG_ROUND_S = 1.0


class CacheMiss(Exception):
    """Something that a run left in the cache is no longer there; the message says what, as part of a sentence."""


@dataclass(frozen=True, kw_only=True)
class Module:
    """One side of a pair, ready to be measured here."""

    case: Case
    loadable: LoadableModule
    mlir: Path  # What was compiled: the model's program, or what plugins made of it
    files: tuple[Path, ...]  # That plugins gave to the tools
    build: Build  # What the run says of the module


def words_of_modules(base: Module, head: Module) -> str:
    """What both sides of a row are, in words that are others where another module is measured, or in another way."""
    return " ".join(
        f"{module.build.module_sha256} {module.case.toolchain} {shlex.join(module.case.run_flags)}"
        for module in (base, head)
    )


def find_module(side: Side, case: Case, toolchain: Toolchain) -> Module:
    """Find a compiled case's module, arguments and weights in the cache."""
    build, model = side.evidence.builds[case.name], side.evidence.models[case.model]
    builds = BuildCache(cache_root())
    kept = builds.find(build.cache_key, case.name)
    if kept is None or kept.module_sha256 != build.module_sha256:
        raise CacheMiss(f"the module of {case.name} in {side.label} is no longer in the cache")
    mlir, arguments, parameters = find_model(side, case)
    return Module(
        case=case,
        build=build,
        mlir=builds.program(build) or mlir,
        files=builds.files(build),
        loadable=LoadableModule(
            name=case.name,
            module=builds.module(build),
            function=model.function,
            arguments=tuple(argument.for_worker() for argument in arguments),
            parameters=parameters,
            run_flags=case.run_flags,
            toolchain=toolchain,
        ),
    )


def find_model(side: Side, case: Case) -> tuple[Path, list[Argument], dict[str, Path]]:
    """Find the program of a case's model, its arguments and its weights by scope."""
    cache, model = cache_root(), side.evidence.models[case.model]
    if not model.mlir or not (cache / model.mlir).is_file():
        raise CacheMiss(f"the model of {case.name} in {side.label} is no longer in the cache")
    folder = side.root / Path(side.run.header.suite).parent
    parameters = {scope: folder / file for scope, file in model.parameter_files.items()}
    for scope, file in parameters.items():
        if not file.is_file():
            raise CacheMiss(f"the weights {scope!r} of {case.name} in {side.label} are not at {file}")
    if len(model.arguments) != len(model.inputs):
        raise CacheMiss(f"{side.label} was made by a harness that did not keep what {case.name} is called with")
    arguments = [
        Argument(file=cache / record.file, flag="", shape=record.shape, dtype=record.dtype, scalar=record.scalar)
        for record in model.arguments
    ]
    if not all(argument.file.is_file() for argument in arguments):
        raise CacheMiss(f"the inputs of {case.name} in {side.label} are no longer in the cache")
    return cache / model.mlir, arguments, parameters


@dataclass
class LatencySampler:
    """Measures one generation after the other in fresh workers, see `measure_both`."""

    group: Group
    settings: Settings
    on_round: Callable[[Round], None]
    known: Mapping[str, Calibration] = field(default_factory=dict)

    def __call__(self, number: int) -> Generation:
        """Measure generation 0, 1, ..."""
        generation, self.known = measure_both(self.group, number, self.settings, self.known, self.on_round)
        return generation


def measure_both(
    group: Group,
    number: int,
    settings: Settings,
    known: Mapping[str, Calibration],
    on_round: Callable[[Round], None],
) -> tuple[Generation, Mapping[str, Calibration]]:
    """Measure a generation of base and head, loaded in turns of order; and what is known of them from then on."""
    started = time.monotonic()
    cases = group.cases if number % 2 == 0 else group.cases[::-1]
    rounds: list[Round] = []
    for item in measure_generation(replace(group, cases=cases), number, settings, known=known):
        if isinstance(item, Lost):
            failure = item.failure
            raise CaseError(failure.stage, f"the {item.case}'s module: {failure.message}", failure.stderr)
        rounds.append(item)
        on_round(item)
    generation = summarise_generation(rounds, time.monotonic() - started)
    if not known:  # once, so that no generation decides how the next one is measured
        calls = {turn.case: turn.calls for measured in rounds for turn in measured.turns}
        medians = {BASE: generation.base, HEAD: generation.head}
        known = {name: Calibration(calls=calls[name], per_call_ns=ns) for name, ns in medians.items() if ns is not None}
    return generation, known


def group_of_row(name: str, base: Module, head: Module) -> Group:
    """Both sides of a row, by its name, to be measured against each other."""
    return group_of(name, head.case, (replace(base.loadable, name=BASE), replace(head.loadable, name=HEAD)))


def group_of(name: str, case: Case, loadables: Iterable[Loadable]) -> Group:
    """What is measured against each other, on the devices of a case."""
    return Group(
        name=name,
        uri=case.uri,
        more_uris=case.more_uris,
        environment=case.environment,
        cases=tuple(loadables),
        cpus=last_core() if case.pin else None,
    )


def measured(
    group: Group, number: int, settings: Settings, known: Mapping[str, Calibration] | None = None
) -> tuple[list[Round], list[Lost]]:
    """A generation of a group in fresh workers: its rounds, and the cases that were lost in it."""
    found = list(measure_generation(group, number, settings, known=known))
    return [item for item in found if isinstance(item, Round)], [item for item in found if isinstance(item, Lost)]


def settings_of_row(seed: int, call_limit_s: float) -> Settings:
    """How each generation of a row is measured."""
    return Settings(seconds=GENERATION_S, seed=seed, call_limit_s=call_limit_s, long_round_s=LONG_ROUND_S)


@dataclass(frozen=True, kw_only=True)
class MeasurementPolicy:
    """How much is measured, and how it is judged."""

    rule: Rule
    budget_s: float  # Wall seconds of looking; of the parts of a case, for all of them together
    cap_s: float = 0.0  # Where the budget has no room for a verdict on what differs plainly
    seed: int
    call_limit_s: float  # After which a turn is stopped
    limits: Limits = field(default_factory=Limits)  # Of each compile, and of each process of another tool
    noise: float = 0.0  # The smallest change that this machine was found to see, as a share; 0: not known
    wait: bool = True  # Whether to wait while another harness measures on this machine

    def task(self, name: str, sample: Callable[[int], Generation]) -> Task:
        """A row for the engine to decide."""
        return Task(
            name=name, sample=sample, rule=self.rule, budget_s=self.budget_s, cap_s=self.cap_s, noise=self.noise
        )


def latency_task(
    name: str,
    base: Module,
    head: Module,
    policy: MeasurementPolicy,
    *,
    long_round_s: float = LONG_ROUND_S,
    on_round: Callable[[Round], None] = lambda _: None,
) -> Task:
    """A row of latencies, measured in fresh workers; rounds come as they end."""
    settings = replace(settings_of_row(policy.seed, policy.call_limit_s), long_round_s=long_round_s)
    return policy.task(name, LatencySampler(group_of_row(name, base, head), settings, on_round))


def compile_task(name: str, base: Module, head: Module, policy: MeasurementPolicy) -> Task:
    """A row of compile times, on the core on which latencies are measured too."""
    policy = replace(policy, noise=0.0)  # which was found for latencies
    return policy.task(name, partial(sample_compiles, base, head, last_core(), policy.limits))


def summarise_generation(rounds: list[Round], seconds: float) -> Generation:
    """One generation's rounds as one sample; base and head are the medians in nanoseconds per call."""
    times = tabulate_rounds(rounds)
    ratios = times.log_ratios(HEAD, BASE)
    return Generation(
        log_ratio=ratios[0].centre if ratios else None,
        base=_median(times.ns_per_call(BASE)),
        head=_median(times.ns_per_call(HEAD)),
        rounds=ratios[0].logs.size if ratios else 0,
        seconds=seconds,
        by_own_time=ratios[0].by_own_time if ratios else 0,
        taken=float(np.mean(list(times.taken.values()))) if times.taken else None,
    )


def _median(generations: tuple[FloatArray, ...]) -> float | None:
    return float(np.median(generations[0])) if generations else None


def sample_compiles(base: Module, head: Module, cpus: frozenset[int] | None, limits: Limits, number: int) -> Generation:
    """One generation of a row of compile times."""
    return compile_both(base, head, cpus, limits, number)[0]


def compile_both(
    base: Module, head: Module, cpus: frozenset[int] | None, limits: Limits, number: int, flags: Sequence[str] = ()
) -> tuple[Generation, str, str]:
    """Compile both sides on the same core, nothing from the cache, in turns of order; and what either compiler said."""
    sides = [(BASE, base), (HEAD, head)][:: 1 if number % 2 == 0 else -1]
    done = {name: _compile(name, side, cpus, limits, flags) for name, side in sides}
    ns = {name: float(finished.wall_ns) for name, finished in done.items()}
    generation = Generation(
        log_ratio=math.log(ns[HEAD] / ns[BASE]) if min(ns.values()) > 0 else None,
        base=ns[BASE],
        head=ns[HEAD],
        rounds=1,
        seconds=sum(ns.values()) / 1e9,
    )
    return generation, done[BASE].stderr, done[HEAD].stderr


def _compile(
    name: str, side: Module, cpus: frozenset[int] | None, limits: Limits, flags: Sequence[str]
) -> process.Finished:
    if side.loadable.toolchain.compiler_is_gone:
        raise CaseError("compile", f"the compiler that made the {name} was built again since, so it cannot be timed")
    with tempfile.TemporaryDirectory(prefix="harness-compile-") as folder:
        for file, link in ((side.mlir, MODEL_FILE), *((file, file.name) for file in side.files)):
            (Path(folder) / link).symlink_to(file.resolve())
        command = [str(side.loadable.toolchain.iree_compile), *side.build.command[1:], *flags]
        try:
            done = process.run(command, cwd=Path(folder), limits=limits, cpus=cpus)
        except OSError as error:
            raise CaseError("compile", f"iree-compile cannot be started ({error.strerror})") from None
    if not done.ok:
        raise CaseError("compile", f"the {name}'s iree-compile {done.how_it_ended(limits)}", done.stderr)
    return done
