"""Text of IR -> lines that compare: what a reader sees of each, and what makes it equal to a line of another program.

Two programs of the same code differ in text by numbers of values and dispatches, by where constants stand, by where
buffers lie in memory, and between releases by a few spellings. A line's keys are without these; its text has
constants where they are used, and long operations on several lines.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
_BRACKETS = {")": "(", "]": "[", "}": "{", ">": "<"}
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
    pieces, opened, begin, quoted = [], [], 0, False
    for place, character in enumerate(line):
        if character == '"':
            quoted = not quoted
        if quoted:
            continue
        if character in "([{<":
            opened.append(character)
        elif character in _BRACKETS and opened and opened[-1] == _BRACKETS[character]:
            opened.pop()
        elif character == "," and opened == ["{"]:
            pieces.append(line[begin : place + 1])
            begin = place + 1
        elif character == " " and not opened and line.startswith(_BEFORE, place) and place > begin:
            pieces.append(line[begin:place])
            begin = place
    pieces.append(line[begin:])
    first, *rest = (piece.rstrip() for piece in pieces)
    return [first, *(indent + piece.strip() for piece in rest if piece.strip())]


def _without_usual_strides(found: re.Match[str]) -> str:
    """A buffer's type without strides that follow from its shape."""
    sizes = [int(size) for size in found["shape"].split("x") if size]
    usual = [math.prod(sizes[place + 1 :]) for place in range(len(sizes))]
    strides = [int(stride) for stride in found["strides"].split(",")]
    kind = f"memref<{found['shape']}{found['element']}"
    return kind if strides == usual else f"{kind}, strided<[{found['strides']}]>"
