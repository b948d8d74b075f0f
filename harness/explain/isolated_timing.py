"""What each dispatch of a program takes alone, for releases whose runtime has no profile (before 3.12).

iree-compile dumps a small program around each dispatch, configured already, which runs it again and again on buffers of
its own; compiled on from there, its code is the program's. All are compiled as one, in the order of the program, since
short loops take another time where their code lies elsewhere; only where that fails, each by itself. Workers time them
on both sides in turns, as they time whole modules.

Nothing else runs in between: what the program would read from memory lies in a cache, and buffers that nobody wrote
hold zeros. So the parts add up to less than the latency where dispatches wait for memory; what is left, with copies and
fills, goes to the host's account. A dispatch that the program runs at several places counts so many times, and once in
a loop. One with sizes that are not known before it runs has no such program.

What is dumped names a constant and leaves out its bytes, which the model's text has; iree-opt prints that of bytecode.
"""

import itertools
import math
import mmap
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.compare.engine import BASE, HEAD
from harness.compare.samplers import GENERATION_S, MeasurementPolicy, Module, group_of, measured
from harness.compile.iree_compile import MODEL_FILE, MODULE_FILE
from harness.errors import CaseError
from harness.explain.parts import match_parts
from harness.explain.profile import Profile, call_in, time_call
from harness.ir.differences import Executable
from harness.measure import LoadableModule, Settings
from harness.measure.generation import load_order
from harness.process import Limits
from harness.stats.pairing import GroupTimes, tabulate_rounds
from harness.toolchain import Toolchain
from harness.toolchain.tools import error_lines, excerpt, flag_name, merge_flags, run_tool

_BYTECODE = b"ML\xefR"
_TEXT_FILE = "constants.mlir"
# As MLIR prints keys: bare, or quoted where they have other characters.
_NAMED = re.compile(r'dense_resource<("(?:[^"\\]|\\.)*"|[\w$.-]+)>')
_SECTION = "{-#"


def constants_of(text: str) -> tuple[str, ...]:
    """The keys of the constants whose bytes are not in a program's text, as they stand there, each once."""
    return () if _SECTION in text else tuple(dict.fromkeys(_NAMED.findall(text)))


def as_text(model: Path, toolchain: Toolchain, folder: Path, limits: Limits) -> Path:
    """A model as text with all its constants; the file itself where it is text, or iree-opt cannot print it."""
    with model.open("rb") as file:
        if file.read(len(_BYTECODE)) != _BYTECODE:
            return model
    tool, text = toolchain.compiler_tools / "iree-opt", folder / _TEXT_FILE
    command = [str(tool), str(model.resolve()), "--allow-unregistered-dialect", "-o", str(text)]
    return text if run_tool("measure", "iree-opt", command, limits=limits).ok else model


def with_constants(text: str, model: Path) -> str:
    """A program's text with the bytes of its constants, as far as the model's text (maybe gigabytes) has them."""
    keys, found = constants_of(text), list[str]()
    if not keys or not model.stat().st_size:
        return text
    with model.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for key in keys:
            said = rb"(?<![\w$.-])" + re.escape(key.encode()) + rb':\s*"0x([0-9A-Fa-f]+)"'
            if match := re.search(said, content):
                found.append(f'      {key}: "0x{match[1].decode()}"')
    if not found:
        return text
    lines = ",\n".join(found)
    return f"{text.rstrip()}\n\n{{-#\n  dialect_resources: {{\n    builtin: {{\n{lines}\n    }}\n  }}\n#-}}\n"


_BENCHMARKS = "benchmarks"
_DISPATCHES_FILE = "dispatches.mlir"
_DUMP_FLAG = f"--iree-hal-dump-executable-benchmarks-to={_BENCHMARKS}"
# Where dumped programs go on.
_FROM_CONFIGURED = "--compile-from=executable-configurations"
# Of no use to a program that is a dispatch already, or given by it.
_OF_WHOLE_PROGRAMS = ("compile-from", "compile-to", "iree-scheduling-dump-")

_EXPORT = re.compile(r'hal\.executable\.export public @(?:"([^"]+)"|([\w$.-]+))')
_FUNCTION = re.compile(r'util\.func public @(?:"([^"]+)"|([\w$.-]+))\(%\w+: i32\)')
# With it, iree-benchmark-module gives a function no inputs, and refuses those that are given since 3.13.
OF_BENCHMARK = ', iree.reflection = {iree.benchmark = "dispatch"}'
# What several dumped programs have alike: the devices.
_GLOBAL = "  util.global "

# A worker's call costs some tens of microseconds, which so long a row of dispatches makes small.
_CALL_NS = 1e6
_MOST_IN_A_CALL = 1000
# Of the first try: iree-benchmark-module goes on until calls take so long, so what the first one sets up is not in it.
_FIRST_LENGTH = "0.01s"
# Turns of one millisecond, of so many rounds at least: base first, then head first, and both once more.
# A round that takes longer than a generation is the only one of its generation, as of whole cases.
_LEAST_ROUNDS = 4


def read_benchmark(text: str) -> dict[str, tuple[str, ...]]:
    """A dumped program: its functions by the dispatch that they run."""
    exports = dict.fromkeys(quoted or plain for quoted, plain in _EXPORT.findall(text))
    functions = [quoted or plain for quoted, plain in _FUNCTION.findall(text)]
    if len(exports) == 1:
        return dict.fromkeys(exports, tuple(functions))
    return {export: tuple(function for function in functions if export in function) for export in exports}


@dataclass(frozen=True, kw_only=True)
class Dumped:
    """Programs around dispatches, as one text; of each dispatch, the functions that run it."""

    text: str
    functions: Mapping[str, tuple[str, ...]]


def join_dumped(dumped: Sequence[Dumped]) -> Dumped:
    """Several dumped programs as one, whose order is theirs."""
    first, *_, last = dumped[0].text.rstrip().splitlines()
    lines: list[str] = []
    known: set[str] = set()
    for each in dumped:
        for line in each.text.rstrip().splitlines()[1:-1]:
            if line not in known:
                lines.append(line)
            if line.startswith(_GLOBAL):
                known.add(line)
    functions = {name: found for each in dumped for name, found in each.functions.items()}
    return Dumped(text="\n".join((first, *lines, last, "")), functions=functions)


def compile_alone(
    module: Module, names: Sequence[str], folder: Path, limits: Limits
) -> tuple[dict[str, tuple[Path, tuple[str, ...]]], dict[str, str]]:
    """Compile each dispatch of a module so that it can be called alone: its new module, and the functions that run it.

    There is a function for each number of workgroups with which the program runs it; each takes how often it runs. Of
    those that do not compile: why, as a phrase.
    """
    dump(module, (_DUMP_FLAG,), folder, limits)
    places = {name: place for place, name in enumerate(names)}
    dumped = []
    for file in (folder / _BENCHMARKS).glob("*.mlir"):
        text = file.read_text(errors="replace").replace(OF_BENCHMARK, "")
        if found := {name: those for name, those in read_benchmark(text).items() if name in places and those}:
            dumped.append(Dumped(text=text, functions=found))
    dumped.sort(key=lambda each: min(places[name] for name in each.functions))
    model = module.mlir
    if any(constants_of(each.text) for each in dumped):
        model = as_text(model, module.loadable.toolchain, folder, limits)
    compiled: dict[str, tuple[Path, tuple[str, ...]]] = {}
    failed: dict[str, str] = {}
    numbers = itertools.count()

    def attempt(program: Dumped) -> str:
        own = folder / f"dispatches{next(numbers)}"
        own.mkdir()
        (own / _DISPATCHES_FILE).write_text(with_constants(program.text, model))
        if why := _compile(module, own, limits):
            return why
        for name, functions in program.functions.items():
            compiled[name] = own / MODULE_FILE, functions
        return ""

    if dumped and attempt(join_dumped(dumped)):
        for program in dumped:
            if why := attempt(program):
                failed |= dict.fromkeys(program.functions, f"it does not compile alone: {why}")
    for name in names:
        if name not in compiled:
            failed.setdefault(
                name, "iree-compile makes no program of it alone, as of one with sizes that are not known"
            )
    return compiled, failed


def dump(module: Module, flags: Sequence[str], folder: Path, limits: Limits) -> None:
    """Compile a module's program once more, with flags that write its dispatches into a folder, one by one."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, name in ((module.mlir, MODEL_FILE), *((file, file.name) for file in module.files)):
        (folder / name).symlink_to(file.resolve())
    tool = str(module.loadable.toolchain.iree_compile)
    command = [tool, *merge_flags(module.build.command[1:], flags)]
    finished = run_tool("measure", "iree-compile", command, cwd=folder, limits=limits)
    if not finished.ok:
        message = f"iree-compile {finished.how_it_ended(limits)} as it wrote its dispatches one by one"
        raise CaseError("measure", message, excerpt(finished.stderr))


def _compile(module: Module, folder: Path, limits: Limits) -> str:
    """Compile the dumped program that a folder has; why that fails, or ""."""
    flags = [_FROM_CONFIGURED, *own_flags(module.build.command)]
    command = [str(module.loadable.toolchain.iree_compile), _DISPATCHES_FILE, "-o", MODULE_FILE, *flags]
    finished = run_tool("measure", "iree-compile", command, cwd=folder, limits=limits)
    if finished.ok and (folder / MODULE_FILE).is_file():
        return ""
    return next(iter(error_lines(finished.stderr)), f"iree-compile {finished.how_it_ended(limits)}")


def own_flags(command: Sequence[str]) -> list[str]:
    """The flags of a compile that another one of a part of its program takes too."""
    output = command.index("-o")
    flags = (*command[2:output], *command[output + 2 :])
    return [flag for flag in flags if not flag_name(flag).startswith(_OF_WHOLE_PROGRAMS)]


class AloneTurns:
    """What each dispatch of both sides takes alone, generation by generation, all in turns in fresh workers."""

    def __init__(
        self,
        base: Module,
        head: Module,
        executables: tuple[Sequence[Executable], Sequence[Executable]],
        folder: Path,
        policy: MeasurementPolicy,
    ) -> None:
        self._executables = dict(zip((BASE, HEAD), executables, strict=True))
        self._untimed: dict[str, dict[str, str]] = {BASE: {}, HEAD: {}}
        # The functions of a side's dispatch by their names as workers have them, and how often a call runs it
        self._timed: dict[tuple[str, str], dict[str, tuple[LoadableModule, int]]] = {}
        self._case, self._policy = head.case, policy
        for side, module in ((BASE, base), (HEAD, head)):
            self._prepare(side, module, folder / side, policy.limits)
        matched = match_parts(*executables)
        self._pairs = [(*part.base, *part.head) for part in matched if len(part.base) == len(part.head) == 1]

    def __call__(self, number: int) -> tuple[Profile, Profile]:
        """Of base and of head, in generation 0, 1, ..."""
        called = {name: one for functions in self._timed.values() for name, (one, _) in functions.items()}
        names = load_order(tuple(called), f"{self._policy.seed}/alone/{number}")
        settings = Settings(
            seconds=GENERATION_S,
            seed=self._policy.seed,
            least_rounds=_LEAST_ROUNDS,
            long_round_s=GENERATION_S,
            call_limit_s=self._policy.call_limit_s,
        )
        group = group_of("dispatches", self._case, (called[name] for name in names))
        rounds, losses = measured(group, number, settings) if names else ([], [])
        for loss in losses:
            for side, dispatch in [key for key, functions in self._timed.items() if loss.case in functions]:
                del self._timed[side, dispatch]
                self._untimed[side][dispatch] = f"it does not run alone: {loss.failure.message}"
        times = tabulate_rounds(rounds)
        found = {side: self._dispatches_ns(side, times) for side in (BASE, HEAD)}
        for base, head in self._pairs:
            if (ratio := self._paired_ratio(base, head, times)) is not None:
                middle = math.sqrt(found[BASE][base.name] * found[HEAD][head.name])
                found[BASE][base.name], found[HEAD][head.name] = middle / math.sqrt(ratio), middle * math.sqrt(ratio)
        base_profile, head_profile = (
            Profile(
                calls=len(rounds),
                call_ns=math.fsum(found[side].values()),
                dispatch_ns=found[side],
                untimed=dict(self._untimed[side]),
            )
            for side in (BASE, HEAD)
        )
        return base_profile, head_profile

    def _prepare(self, side: str, module: Module, folder: Path, limits: Limits) -> None:
        names = [executable.name for executable in self._executables[side]]
        compiled: Mapping[str, tuple[Path, tuple[str, ...]]] = {}
        try:
            compiled, self._untimed[side] = compile_alone(module, names, folder, limits)
        except CaseError as error:
            self._untimed[side] = dict.fromkeys(names, str(error))
        for name, (alone, functions) in compiled.items():
            try:
                self._timed[side, name] = {
                    called: as_loadable(called, module, alone, function, limits)
                    for function in functions
                    for called in (f"{side} {function}",)
                }
            except CaseError as error:
                self._untimed[side][name] = f"it does not run alone: {error}"

    def _dispatches_ns(self, side: str, times: GroupTimes) -> dict[str, float]:
        """Of a call of the program, by dispatch; 0 of one that is not timed."""
        found = {}
        for executable in self._executables[side]:
            functions = self._timed.get((side, executable.name), {})
            known = {name: ns for name in functions if (ns := times.ns_per_call(name))}
            each = [float(np.median(ns[0])) / functions[name][1] for name, ns in known.items()]
            found[executable.name] = max(1, executable.dispatches) * float(np.mean(each)) if each else 0.0
        return found

    def _paired_ratio(self, base: Executable, head: Executable, times: GroupTimes) -> float | None:
        """Head over base of a call, by turns of the same rounds; None where one of them has no function, or several."""
        functions = self._timed.get((BASE, base.name), {}), self._timed.get((HEAD, head.name), {})
        if len(functions[0]) != 1 or len(functions[1]) != 1:
            return None
        ((of_base, (_, base_batch)),), ((of_head, (_, head_batch)),) = (each.items() for each in functions)
        ratios = times.log_ratios(of_head, of_base)
        if not ratios:
            return None
        return math.exp(ratios[0].centre) * base_batch / head_batch * max(1, head.dispatches) / max(1, base.dispatches)


def as_loadable(
    name: str, module: Module, alone: Path, function: str, limits: Limits, *, batch: int | None = None
) -> tuple[LoadableModule, int]:
    """A function of a dispatch alone, as workers call it, and how often such a call runs the dispatch."""
    if batch is None:
        first_ns = time_call(call_in(module, alone.parent, function, inputs=("1",)), _FIRST_LENGTH, limits)
        batch = max(1, min(_MOST_IN_A_CALL, math.ceil(_CALL_NS / max(first_ns, 1.0))))
    file = alone.with_name(f"batch{batch}.npy")
    np.save(file, np.array(batch, dtype=np.int32), allow_pickle=False)
    loadable = LoadableModule(
        name=name,
        module=alone,
        function=function,
        arguments=({"file": str(file.absolute()), "scalar": True},),
        parameters={},
        run_flags=module.loadable.run_flags,
        toolchain=module.loadable.toolchain,
        shares_context=True,
    )
    return loadable, batch
