"""Two cases -> their executables in pairs, and where each pair differs first.

Names, constants and what releases print otherwise are no difference.
"""

import difflib
import math
import re
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from harness.ir.counts import OpCounts
from harness.ir.dump import ask
from harness.metrics import PHASES
from harness.process import Limits
from harness.records.run import Sizes
from harness.toolchain import Toolchain

_LONGEST_LINE = 100

_CONSTANT = re.compile(
    r"\s*(?P<name>%\w+) = (?:arith|llvm\.mlir|index)\.constant(?: \{[^}]*\})?\(? ?(?P<value>.+?)"
    r"(?: : [^:]+?)?\)?(?: : [^:]+)?$"
)
_DEFINED = re.compile(r"\s*(?P<names>%\w+(?::\d+)?(?:, %\w+(?::\d+)?)*) =")
_ARGUMENT = re.compile(r"(%\w+): ")
_VALUE = re.compile(r"%\w+")
# Of a binding, whose own place in it follows; the export has it once more.
_LAYOUT = re.compile(r"(?<=binding\.subspan )layout\(<.*>\) (?=binding\()")
_BEFORE = (" ins(", " outs(", " attrs = ", " attributes {")

_STRIDED = re.compile(
    r"memref<(?P<shape>(?:\d+x)+)(?P<element>\w+), strided<\[(?P<strides>[\d, ]+)\](?:, offset: [^>]+)?>"
)
# Spellings that mean the same, or nothing of the code: what they are in one release, and what stands for them.
_SPELLINGS = (
    (re.compile(r'cpu_features = "[^"]*"'), 'cpu_features = "..."'),  # 1.5 kB, in another order in each release
    # 3.12 made an attribute of each backend's pipelines: CPUDoubleTilingExpert, #iree_cpu.pipeline<DoubleTilingExpert>.
    (re.compile(r"#iree_\w+\.pipeline<(\w+)>"), r"\1"),
    (re.compile(r"pipeline = (?:CPU|LLVMGPU|SPIRV|VMVX)(?=[A-Z])"), "pipeline = "),
    (re.compile(r"\b(?:flow|iree_tensor_ext)\.dispatch\."), "dispatch."),  # loads and stores changed their dialect
    # Where a buffer begins says how the whole program's memory is packed.
    (re.compile(r"(binding\.subspan .*)\boffset\([^()]*\)"), r"\1offset(...)"),
    (re.compile(r"(stream\.binding\.subspan %\w+)\[[^\]]*\]"), r"\1[...]"),
    (re.compile(r", offset: [^>,]+>"), ">"),
    (re.compile(r"= {2,}"), "= "),
    # Printers of several releases: `"x.y"(%0) <{a = 1 : i64}>`, `x.y %0 {a = 1 : i64}`, `x.y(%0) <a = 1>`; of 3.13,
    # `masked.load(%0), alignment(4)` and `fastmath<fast>`.
    (re.compile(r'"(\w+\.[\w.]+)"(?=\()'), r"\1"),
    (re.compile(r"^(\s*(?:%[^=]* = )?\w+\.[\w.]+) ?\(([^()]*)\)(?! ?->)"), r"\1 \2"),
    (re.compile(r" <\{?(\w+ = [^{}]*?)\}?>(?= :|$)"), r" {\1}"),
    (re.compile(r", alignment\((\d+)\)"), r" {alignment = \1}"),
    (re.compile(r"\{fastmathFlags = #\w+\.fastmath<([\w,| ]+)>\}"), r"fastmath<\1>"),
    (re.compile(r" fastmath<none>"), ""),
    (re.compile(r" attributes \{"), " {"),
    (re.compile(r"( = -?\d+) : (?:i32|i64|index)\b"), r"\1"),
    (re.compile(r" +$"), ""),
)


@dataclass(frozen=True)
class Line:
    """One line of a program."""

    text: str  # For a reader
    key: str  # Equal in programs of equal code
    loose: str  # The same whichever values it takes, so that lines meet though those before them differ


def canonical_lines(texts: Iterable[str], symbols: Iterable[str] = ()) -> tuple[Line, ...]:
    """The lines of operations, each of which has values of its own."""
    ordered = sorted(set(symbols), key=len, reverse=True)
    own = re.compile("|".join(rf'@"?{re.escape(name)}(?![\w$.-])"?' for name in ordered)) if ordered else None
    lines: list[Line] = []
    for text in texts:
        numbers: dict[str, str] = {}  # of values, in the order in which they appear
        for shown in _with_constants(text.splitlines()):
            for piece in _broken(shown):
                key = _STRIDED.sub(_without_usual_strides, own.sub("@...", piece) if own is not None else piece)
                for pattern, instead in _SPELLINGS:
                    key = pattern.sub(instead, key)
                loose = _VALUE.sub("%", key)
                for value in _VALUE.findall(key):
                    numbers.setdefault(value, f"%{len(numbers)}")
                numbered = _VALUE.sub(lambda value: numbers[value[0]], key)  # noqa: B023 (used at once)
                lines.append(Line(piece, numbered.strip(), loose.strip()))
    return tuple(lines)


def same_code(base: Sequence[Line], head: Sequence[Line]) -> bool:
    """Whether two programs are the same but for what keys leave out."""
    return [line.key for line in base] == [line.key for line in head]


def _with_constants(lines: Iterable[str]) -> Iterable[str]:
    constants: dict[str, str] = {}
    for line in lines:
        if match := _CONSTANT.match(line):
            constants[match["name"]] = match["value"]
            continue
        # A name may stand for another value in the next region.
        if defined := _DEFINED.match(line):
            for name in _VALUE.findall(defined["names"]):
                constants.pop(name, None)
        if line.lstrip().startswith("^"):
            for name in _ARGUMENT.findall(line):
                constants.pop(name, None)
        yield _LAYOUT.sub("", _VALUE.sub(lambda value: constants.get(value[0], value[0]), line))


def _broken(line: str) -> list[str]:
    """A long operation as several lines: its attributes, operands and results."""
    if len(line) <= _LONGEST_LINE:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    pieces, begin = [], 0
    for place, opened in open_brackets(line):
        if line[place] == "," and opened == "{":
            pieces.append(line[begin : place + 1])
            begin = place + 1
        elif not opened and place > begin and line.startswith(_BEFORE, place):
            pieces.append(line[begin:place])
            begin = place
    pieces.append(line[begin:])
    first, *rest = (piece.rstrip() for piece in pieces)
    return [first, *(indent + piece.strip() for piece in rest if piece.strip())]


def open_brackets(text: str, begin: int = 0) -> Iterator[tuple[int, str]]:
    """Each place from there on that is in no string, and the brackets that are open behind it."""
    opened, quoted = "", False
    for place, character in enumerate(text[begin:], begin):
        if character == '"':
            quoted = not quoted
        if quoted:
            continue
        if character in "<([{":
            opened += character
        elif character in ")]}" or (character == ">" and text[place - 1] not in "-="):
            opened = opened[:-1]
        yield place, opened


def _without_usual_strides(found: re.Match[str]) -> str:
    """A buffer's type without strides that follow from its shape."""
    sizes = [int(size) for size in found["shape"].split("x") if size]
    usual = [math.prod(sizes[place + 1 :]) for place in range(len(sizes))]
    strides = [int(stride) for stride in found["strides"].split(",")]
    kind = f"memref<{found['shape']}{found['element']}"
    return kind if strides == usual else f"{kind}, strided<[{found['strides']}]>"


Code: TypeAlias = Mapping[str, tuple[Line, ...]]  # Lines by phase

# Where a program has executables, in the compiler's order.
EXECUTABLE_PHASES = PHASES[PHASES.index("flow") : PHASES.index("executable-targets") + 1]
# Where what is outside them is compared: after these, executables are all that changes.
PROGRAM_PHASES = PHASES[: PHASES.index("stream") + 1]

# Why two executables are taken for each other's, in the order in which that is tried; "": it has none.
MatchedBy = Literal["same code", "same input", "operation and shape", "operation", "place", ""]

# `main$async_dispatch_3_conv_2d_nchw_fchw_1x32x90x62x64x3x3_f32`, and the operation of that without its shape.
_OPERATION = re.compile(r"_dispatch_\d+_(.+)$")
_SHAPE = re.compile(r"_(?:\d+|D)(?:x(?:\d+|D))*(?=_|$).*")
_PIPELINE = re.compile(r"pipeline = (?:#iree_\w+\.pipeline<)?([\w.]+)")
_BACKEND = re.compile(r"\b(?:CPU|LLVMGPU|SPIRV|VMVX)(?=[A-Z])")
_FACT = re.compile(r'(\w+) = ("[^"]*"|[^,{}"]+)')
_FEATURE = re.compile(r"\+[\w.-]+")
# Of x86; newer features bring them, and 3.12 names them too.
_USUAL = frozenset(("+sse", "+sse2", "+sse3", "+ssse3", "+sse4.1", "+sse4.2", "+avx"))
_CONTEXT = 1
# Longer programs are compared line by line only where that is quick.
_QUICK_LINES = 20_000


@dataclass(frozen=True, kw_only=True)
class Executable:
    """One executable of a program."""

    name: str  # Of the function that is dispatched
    phases: Code  # What it is at each phase
    dispatches: int = 0  # How many operations of the program dispatch it; a loop's body counts once

    @property
    def operation(self) -> str:
        """What its name says that it does, with shape: `conv_32x90x62x64x3x3_f32`; "" where it says nothing."""
        found = _OPERATION.search(self.name)
        return found[1] if found else ""

    @property
    def kind(self) -> str:
        """What it does without its shape: `conv`."""
        return _SHAPE.sub("", self.operation)

    @property
    def pipeline(self) -> str:
        """The code generator's pipelines that it is given, with commas; "" where it is given none."""
        lines = self.phases.get("executable-configurations", ())
        return ", ".join(dict.fromkeys(name for line in lines for name in _PIPELINE.findall(line.text)))


@dataclass(frozen=True, kw_only=True)
class Match:
    """An executable of one program and the one of the other that it is compared with; at least one is there."""

    base: Executable | None
    head: Executable | None
    by: MatchedBy


def match_executables(base: Sequence[Executable], head: Sequence[Executable]) -> tuple[Match, ...]:
    """Each executable with the one of the other program that it is most like, in the order of base, then of head.

    Place counts where as many are left on both sides. Of several that are alike, the first meets the first.
    """
    pairs: dict[int, tuple[int, MatchedBy]] = {}

    def match(by: MatchedBy, key: Callable[[Executable], Hashable]) -> None:
        taken = {place for place, _ in pairs.values()}
        waiting: dict[Hashable, deque[int]] = {}
        for place, executable in enumerate(head):
            if place not in taken and (of_head := key(executable)):
                waiting.setdefault(of_head, deque()).append(place)
        for place, executable in enumerate(base):
            if place not in pairs and (of_base := key(executable)) and waiting.get(of_base):
                pairs[place] = (waiting[of_base].popleft(), by)

    match("same code", lambda executable: _code(executable, -1))
    match("same input", lambda executable: _code(executable, 0))
    match("operation and shape", lambda executable: executable.operation)
    match("operation", lambda executable: executable.kind)
    if len(base) == len(head):
        match("place", lambda _: "any")
    nobody: tuple[int | None, MatchedBy] = (None, "")
    matches = []
    for place, executable in enumerate(base):
        at, by = pairs.get(place, nobody)
        matches.append(Match(base=executable, head=None if at is None else head[at], by=by))
    taken = {place for place, _ in pairs.values()}
    alone = (Match(base=None, head=executable, by="") for place, executable in enumerate(head) if place not in taken)
    return (*matches, *alone)


def first_difference(
    base: Mapping[str, Sequence[Line]], head: Mapping[str, Sequence[Line]], phases: Sequence[str]
) -> str | None:
    """The first of the phases at which two programs are not the same; None where none is, of those that both have."""
    both = (phase for phase in phases if phase in base and phase in head)
    return next((phase for phase in both if not same_code(base[phase], head[phase])), None)


def changed_lines(base: Sequence[Line], head: Sequence[Line]) -> list[str]:
    """What differs, as `diff -u` shows it: `-` for base, `+` for head, a blank for lines around, `@@` for a gap."""
    keys = [[line.loose for line in lines] for lines in (base, head)]
    if keys[0] == keys[1]:  # other values in the same lines
        keys = [[line.key for line in lines] for lines in (base, head)]
    matcher = difflib.SequenceMatcher(None, keys[0], keys[1], autojunk=len(base) + len(head) > _QUICK_LINES)
    shown: list[str] = []
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        shown += ["@@"] if shown else []
        for kind, begin, end, other_begin, other_end in group:
            if kind == "equal":
                shown += [f"  {line.text}" for line in base[begin:end]]
            else:
                shown += [f"- {line.text}" for line in base[begin:end]]
                shown += [f"+ {line.text}" for line in head[other_begin:other_end]]
    indents = [len(line) - 2 - len(line[2:].lstrip()) for line in shown if line != "@@" and line[2:].strip()]
    cut = min(indents, default=0)  # what all of them have behind their mark
    return [line if line == "@@" else f"{line[:2]}{line[2 + cut :]}" for line in shown]


def pipelines_differ(base: Executable, head: Executable) -> bool:
    """Whether the code generator was given other pipelines; 3.12 calls `CPUDefault` `Default`."""
    return _BACKEND.sub("", base.pipeline) != _BACKEND.sub("", head.pipeline)


def target_changes(base: str, head: str) -> list[str]:
    """What differs between two targets of executables: `cpu: "haswell" and "znver4"`; nothing where one has none."""
    if not (base and head):
        return []
    facts = [dict(_FACT.findall(target)) for target in (base, head)]
    changes = []
    for key in dict.fromkeys((*facts[0], *facts[1])):
        of_base, of_head = (side.get(key, "none") for side in facts)
        if key == "cpu_features":
            features = [set(_FEATURE.findall(value)) - _USUAL for value in (of_base, of_head)]
            for whose, only in (("base", features[0] - features[1]), ("head", features[1] - features[0])):
                changes += [f"{key}: only {whose} has {', '.join(sorted(only))}"] if only else []
        elif of_base != of_head:
            changes.append(f"{key}: {of_base} and {of_head}")
    return changes


def _code(executable: Executable, which: int) -> tuple[str, ...]:
    """Its code at its last phase (-1) or its first (0), with the phase's name; () where it has none."""
    phases = [phase for phase in EXECUTABLE_PHASES if phase in executable.phases]
    if not phases:
        return ()
    return (phases[which], *(line.key for line in executable.phases[phases[which]]))


@dataclass(frozen=True, kw_only=True)
class ProgramParts:
    """One program at some phases."""

    program: Code  # What is outside executables, by phase
    executables: tuple[Executable, ...]  # In the order in which they stand at the last phase that has any
    target: str = ""  # What they are compiled for, as MLIR writes the target of the first; "" where no phase says it


def read_parts(files: Mapping[str, Path], *, toolchain: Toolchain, limits: Limits) -> ProgramParts:
    """Take programs apart, as `dump_phases` gives them."""
    answers = ask("parts", files, f" at {', '.join(files)}", toolchain=toolchain, limits=limits)
    program: dict[str, tuple[Line, ...]] = {}
    code: dict[str, dict[str, tuple[Line, ...]]] = {}
    dispatches: dict[str, int] = {}
    order: list[str] = []
    target = ""
    for phase in files:
        found = answers[phase]
        if phase in PROGRAM_PHASES:
            program[phase] = canonical_lines(found["program"])
        if phase not in EXECUTABLE_PHASES:
            continue
        for executable in found["executables"]:
            name = executable["name"]
            code.setdefault(name, {})[phase] = canonical_lines(executable["texts"], executable["names"])
            dispatches[name] = max(dispatches.get(name, 0), executable["dispatches"])
            target = target or next(iter(executable["targets"]), "")
        order = [executable["name"] for executable in found["executables"]] or order
    executables = tuple(
        Executable(name=name, phases=code[name], dispatches=dispatches[name]) for name in dict.fromkeys(order)
    )
    return ProgramParts(program=program, executables=executables, target=target)


@dataclass(frozen=True, kw_only=True)
class ComparedCase:
    """One of two cases whose IR is compared."""

    name: str
    label: str  # What tells it from the other
    toolchain: str  # Release of IREE that compiled it
    counts: Mapping[str, OpCounts]  # Ops by phase
    parts: ProgramParts
    sizes: Sizes | None
    texts: Mapping[str, str]  # The IR itself by phase; {} where it was not asked for


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The first phase at which two programs, or two executables, differ."""

    phase: str
    lines: tuple[str, ...]  # As `changed_lines` gives them

    @property
    def changes(self) -> tuple[int, int]:
        """How many lines only base has, and only head."""
        return sum(line.startswith("-") for line in self.lines), sum(line.startswith("+") for line in self.lines)


@dataclass(frozen=True, kw_only=True)
class IrComparison:
    """What two cases' IR has in common, and what not."""

    base: ComparedCase
    head: ComparedCase
    # Each match with its first difference; None where its code is the same, or there is one side only
    executables: tuple[tuple[Match, Difference | None], ...]
    program: Difference | None  # Of what is outside executables; None where that is the same
    target: tuple[str, ...]  # What differs between their targets, in words
    # Phases that are not compared, as the IR of one of them cannot be read back there, and why
    unread: Mapping[str, str]


def compare_ir(base: ComparedCase, head: ComparedCase, *, unread: Mapping[str, str] | None = None) -> IrComparison:
    """Match the executables of two cases, and find the first phase at which each pair and the programs differ."""
    program = _difference(base.parts.program, head.parts.program, PROGRAM_PHASES)
    matches = match_executables(base.parts.executables, head.parts.executables)
    return IrComparison(
        base=base,
        head=head,
        executables=tuple(
            (match, _difference(match.base.phases, match.head.phases, EXECUTABLE_PHASES))
            if match.base is not None and match.head is not None and match.by != "same code"
            else (match, None)
            for match in matches
        ),
        program=program,
        target=tuple(target_changes(base.parts.target, head.parts.target)),
        unread=unread or {},
    )


def _difference(base: Code, head: Code, phases: tuple[str, ...]) -> Difference | None:
    phase = first_difference(base, head, phases)
    return None if phase is None else Difference(phase=phase, lines=tuple(changed_lines(base[phase], head[phase])))
