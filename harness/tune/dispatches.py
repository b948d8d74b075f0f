"""The dispatches of a program, each as a program of its own that is compiled with any tuning spec in half a second.

iree-compile writes each dispatch three times: as it is formed (its source), with the configuration that it is given,
and as a small program that runs it on buffers of its own, where it is configured already. A spec is asked before that,
so the source is put into the program in place of what is configured.

What the program allocates it never writes, and all pages that nobody wrote are one page of zeros, which is always in
the first-level cache: a matmul took 1.3 ms with some tiles and 3.0 ms with others, and in the whole model 1.5 ms with
either. So the buffers are filled first. The compiler prints each operation that a spec configures.
"""

import hashlib
import re
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.compare.samplers import Module
from harness.compile.iree_compile import MODULE_FILE
from harness.explain.isolated_timing import (
    OF_BENCHMARK,
    as_text,
    constants_of,
    dump,
    own_flags,
    read_benchmark,
    with_constants,
)
from harness.files import file_sha256
from harness.ir.child import SEPARATOR
from harness.ir.differences import Executable
from harness.ir.dump import ask
from harness.process import Limits
from harness.toolchain.tools import error_lines, merge_flags, run_tool
from harness.tune.tiles import Root, root_of

_FOLDERS = {"sources": "sources", "configurations": "configured", "benchmarks": "benchmarks"}
_DUMP_FLAGS = (
    *(f"--iree-hal-dump-executable-{what}-to={folder}" for what, folder in _FOLDERS.items()),
    "--compile-to=executable-configurations",  # what comes later takes most of a compile
)
_FROM_SOURCES = "--compile-from=executable-sources"
_SPEC_FILE = "candidate-spec.mlir"

_UNCONFIGURED: Mapping[str, Any] = {"pipeline": "", "operations": ()}
# Where a dumped program allocates the buffer of all its bindings.
_ALLOCATES = re.compile(
    r"^( *)(%[\w$.-]+) = hal\.allocator\.allocate<.* affinity\((%[\w$.-]+)\) .*: !hal\.buffer\{(%[\w$.-]+)\}\n",
    re.MULTILINE,
)
# Floats of every width are usual numbers with it. Integers may be places to read from, and 0 is one everywhere.
_HALVES, _ZEROS = 0x3F003F00, 0
_INTEGERS = re.compile(r"tensor<[^<>]*(?:x|:tensor<)i\d+>")

_EXECUTABLE = re.compile(
    r'^(?P<indent> *)hal\.executable (?:public|private) (?P<name>@(?:"[^"]+"|[\w$.-]+)) \{\n.*?^(?P=indent)\}\n',
    re.MULTILINE | re.DOTALL,
)
# What differs between places that run the same code: values of weights, and where in a buffer something lies.
_VALUES = re.compile(r'dense_resource<(?:"(?:[^"\\]|\\.)*"|[\w$.-]+)>|dense<(?:"0x[^"]*"|\[[^>]*\])>(?= : tensor<)')
_OFFSET = re.compile(r"\boffset\(%\w+\)")
_INDEX = re.compile(r"^ *(%\w+) = arith\.constant \d+ : index\n", re.MULTILINE)
# Where a spec says what an operation is given, and the op before it that prints the operation.
_GIVES = re.compile(r'^( *)transform\.annotate (%[\w$.-]+) "compilation_info"', re.MULTILINE)
_MARK = "configured by a tuning spec"
_PRINTS = rf'\1"transform.print"(\2) <{{name = "{_MARK}", skip_regions}}> : (!transform.any_op) -> ()\n\g<0>'


@dataclass(frozen=True, kw_only=True)
class Dispatch:
    """Code that a program runs at one place or more."""

    name: str  # Of its function, at the first place
    operation: str  # What the name says that it does, with shape: `conv_2d_nhwc_hwcf_1x90x62x32x3x3x64_f32`
    # A hash of its source, target included, without names, values of weights and offsets in buffers: the same in other
    # programs that have it
    key: str
    places: tuple[str, ...]  # Names of all functions with this code, as a profile has them
    root: Root | None  # What a spec can configure; None where there is nothing, and `why` says why, as a phrase
    why: str = ""
    program: Path | None = None  # A program that runs the first of them alone; None where there is no root
    function: str = ""  # Of that program; it takes how often it runs the dispatch


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """A dispatch's program as a module."""

    module: Path
    sha256: str
    matched: int = 0  # How many operations the spec configured; 0 without a spec


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A candidate that does not compile, and why: iree-compile's first error, or the limit that it hit."""

    reason: str


def take_out(module: Module, folder: Path, limits: Limits) -> tuple[Dispatch, ...]:
    """The dispatches of a module's program, in its order; those of equal code are one."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="dumps-") as scratch:
        return _take_out(module, Path(scratch), folder, limits)


def _take_out(module: Module, scratch: Path, folder: Path, limits: Limits) -> tuple[Dispatch, ...]:
    dump(module, _DUMP_FLAGS, scratch, limits)
    sources, configured, benchmarks = (_executables(scratch / each) for each in _FOLDERS.values())
    if not sources:
        return ()
    before, after = (_functions(texts, module, scratch, limits) for texts in (sources, configured))
    by_key: dict[str, list[str]] = {}
    for name in before:
        by_key.setdefault(_key(sources[name], name, before[name]["name"]), []).append(name)
    model: Path | None = None
    found = []
    for key, same in by_key.items():
        first, places = same[0], tuple(before[name]["name"] for name in same)
        root, why = root_of(before[first], after.get(first, _UNCONFIGURED))
        runs = read_benchmark(benchmarks.get(first, "")).get(places[0], ())
        if root is not None and not runs:
            root, why = None, "iree-compile makes no program of it alone"
        program, function = None, ""
        if root is not None:
            text = _with_source(benchmarks[first], sources[first])
            text = _filled(text)
            if constants_of(text):
                model = model or as_text(module.mlir, module.loadable.toolchain, scratch, limits)
                text = with_constants(text, model)
            program, function = folder / f"{key[:16]}.mlir", runs[0]
            program.write_text(text)
        found.append(
            Dispatch(
                name=places[0],
                operation=Executable(name=places[0], phases={}).operation,
                key=key,
                places=places,
                root=root,
                why=why,
                program=program,
                function=function,
            )
        )
    return tuple(found)


def compile_candidate(
    dispatch: Dispatch, spec: str | None, module: Module, folder: Path, limits: Limits
) -> Compiled | Refused:
    """Compile a dispatch that has a root, as its program's module was compiled."""
    assert dispatch.program is not None  # noqa: S101 (one that has a root has a program)
    folder.mkdir(parents=True, exist_ok=True)
    for file in module.files:
        if not (folder / file.name).is_symlink():
            (folder / file.name).symlink_to(file.resolve())
    more = [_FROM_SOURCES]
    if spec is not None:
        (folder / _SPEC_FILE).write_text(_GIVES.sub(_PRINTS, spec))
        more.append(f"--iree-codegen-tuning-spec-path={_SPEC_FILE}")
    tool, made = str(module.loadable.toolchain.iree_compile), folder / MODULE_FILE
    flags = merge_flags(own_flags(module.build.command), more)
    command = [tool, str(dispatch.program.resolve()), "-o", MODULE_FILE, *flags]
    finished = run_tool("compile", "iree-compile", command, cwd=folder, limits=limits)
    if not finished.ok or not made.is_file():
        said = error_lines(finished.stderr) if finished.limit is None else ()
        return Refused(reason=next(iter(said), f"iree-compile {finished.how_it_ended(limits)}"))
    return Compiled(module=made, sha256=file_sha256(made), matched=finished.stdout.count(_MARK))


def _executables(folder: Path) -> dict[str, str]:
    """What was dumped, by the symbol of its executable, in the order of the program."""
    texts = (file.read_text(errors="replace") for file in folder.glob("*.mlir"))
    found = {match["name"]: text for text in texts if (match := _EXECUTABLE.search(text))}
    return dict(sorted(found.items(), key=lambda item: [int(number) for number in re.findall(r"\d+", item[0])]))


def _functions(texts: Mapping[str, str], module: Module, folder: Path, limits: Limits) -> dict[str, Mapping[str, Any]]:
    """The function of each of these executables, as harness.ir.operations answers; of several the first."""
    file = folder / "read.mlir"
    file.write_bytes(SEPARATOR.join(text.encode() for text in texts.values()))
    where, toolchain = " on what iree-compile wrote of them", module.loadable.toolchain
    answers = ask("structured", {"read": file}, where, toolchain=toolchain, limits=limits)
    found = zip(texts, answers["read"], strict=True)
    return {name: functions[0] for name, functions in found if functions}


def _with_source(benchmark: str, source: str) -> str:
    """A program that runs a configured dispatch, with the dispatch's source in place of that, as plain functions."""
    private = source.replace("hal.executable public", "hal.executable private", 1)
    return _EXECUTABLE.sub(lambda _: private, benchmark, count=1).replace(OF_BENCHMARK, "")


def _key(source: str, *names: str) -> str:
    """A hash of an executable's text without names, values of weights and offsets in buffers."""
    for name in sorted(names, key=len, reverse=True):
        source = source.replace(name.strip('@"'), "it")
    source = _OFFSET.sub("offset(it)", _VALUES.sub("dense<it>", source))
    used = Counter(re.findall(r"%\w+", source))
    return hashlib.sha256(_INDEX.sub(lambda line: line[0] if used[line[1]] > 1 else "", source).encode()).hexdigest()


def _filled(program: str) -> str:
    """A dumped program that writes its buffers once, when it is loaded."""
    pattern = _ZEROS if _INTEGERS.search(program) else _HALVES

    def fill(match: re.Match[str]) -> str:
        indent, buffer, affinity, length = match.groups()
        lines = (
            "%fill_begin = arith.constant 0 : index",
            f"%fill_with = arith.constant {pattern} : i32",
            "%fill_after = util.null : !hal.fence",
            '%fill_done = hal.fence.create device(%device : !hal.device) flags("None") : !hal.fence',
            f"hal.device.queue.fill<%device : !hal.device> affinity({affinity}) wait(%fill_after) signal(%fill_done) "
            f'target({buffer} : !hal.buffer)[%fill_begin] length({length}) pattern(%fill_with : i32) flags("None")',
            "%fill_always = arith.constant -1 : i32",
            '%fill_status = hal.fence.await until([%fill_done]) timeout_millis(%fill_always) flags("None") : i32',
            'util.status.check_ok %fill_status, "the buffers cannot be filled"',
        )
        return match[0] + "".join(f"{indent}{line}\n" for line in lines)

    return _ALLOCATES.sub(fill, program)
