"""A dispatch's IR -> what the compiler decided for it: what is fused, layouts and types, pipeline, tile sizes.

All of it is read from the lines that `harness.ir.canonical` makes, where attributes stand in place and an operation
begins a line; releases from 3.0 on spell these things in few ways.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.explain.phrases import Labels, enumerated, on
from harness.ir.canonical import Line
from harness.ir.differences import Executable, pipelines_differ
from harness.text import plural

FORMED = "flow"  # the first phase that has dispatches
CONFIGURED = "executable-configurations"
_LOWERED = "executable-targets"

_OPERATION = re.compile(r'\s*(?:%[\w:, %]+ = )?"?(?P<name>[a-z]\w*(?:\.\w+)+)"?(?=[\s({<]|$)(?!\s*=\s)')
_DIALECTS = ("linalg", "iree_linalg_ext", "tensor", "iree_encoding")
_OTHERS = ("iree_codegen.inner_tiled", "iree_codegen.ukernel.generic")
# They only say what is where, or are part of an operation around them.
_PLAIN = frozenset(
    (
        *("linalg.yield", "linalg.index", "iree_linalg_ext.yield", "iree_linalg_ext.index", "tensor.yield"),
        *("tensor.empty", "tensor.dim", "tensor.cast", "tensor.extract", "tensor.from_elements"),
        *("tensor.expand_shape", "tensor.collapse_shape"),
    )
)
_GENERIC, _END_OF_BODY = "linalg.generic", "linalg.yield"
_REDUCTION = '"reduction"'
_PRODUCTS = ({"mulf", "addf"}, {"muli", "addi"})
_CASTS = frozenset(("extf", "extsi", "extui", "truncf", "trunci", "sitofp", "uitofp", "fptosi", "fptoui"))
_MOST_NAMES = 3

_TENSOR = re.compile(r"dispatch\.tensor<(?=(?P<access>\w+):)")
_SHAPE = re.compile(r"(?P<sizes>(?:(?:\d+|\?)x)*)(?P<element>.+)")
_TRANSLATION = re.compile(r"translation_info<")
_SIZE_OPTION = re.compile(r"\b((?:workgroup|subgroup)_size) = (\[[^\]]*\]|\d+)")
_CONFIGURATION = re.compile(r"lowering_config<")
_MICROKERNEL = re.compile(r"\biree_uk_\w+")

# What the levels of `tile_sizes` are, which older releases have in place of names, by how many there are.
_FEW = ("distribution", "vector_common_parallel", "vector_reduction", "vector_inner_parallel")
_SIX = ("distribution", "cache_parallel", "cache_reduction", *_FEW[1:])
_LEVELS: Mapping[int, tuple[str, ...]] = {**{number: _FEW[:number] for number in (1, 2, 3, 4)}, 6: _SIX}
_OF_CPUS = ("CPU", "Mmt4d")

_OPENING, _CLOSING = "<([{", ">)]}"


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """A tensor that a dispatch reads or writes."""

    access: str  # `readonly`, `writeonly` or `readwrite`
    shape: tuple[str, ...]  # Its sizes; `?` where the run decides
    element: str  # `f32`
    encoding: str = ""  # How it is laid out, as MLIR writes it; "" where it is row-major

    @property
    def text(self) -> str:
        """`8x12x8xf32`."""
        return "x".join((*self.shape, self.element))


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """What the compiler decided for one dispatch, as far as its phases are there."""

    operations: Mapping[str, int]  # Those that it is formed of, and how many of each
    tensors: tuple[Tensor, ...]  # In the order of its arguments
    pipeline: str  # Of the code generator; "" where it is given none
    options: tuple[str, ...]  # Of the pipeline: `enable_loop_peeling`, `workgroup_size = [64, 1, 1]`
    # Of the operation that decides: `vector_common_parallel`: `[1, 4, 1, 2]`. Loops that a level does not tile are left
    # out behind the last parallel one, and before the first reduction.
    tiles: Mapping[str, str]
    configured: Mapping[str, int]  # Operations when it is configured: layouts may have made others of them
    microkernels: tuple[str, ...]  # Names of those that it calls


def decisions_of(executable: Executable) -> Decisions:
    """What the compiler decided for an executable."""
    formed = _texts(executable, FORMED)
    configured = _texts(executable, CONFIGURED)
    lowered = " ".join(_texts(executable, _LOWERED))
    pipeline = executable.pipeline
    return Decisions(
        operations=operations_in(formed),
        tensors=_tensors(formed),
        pipeline=pipeline,
        options=_options(configured),
        tiles=_tiles_of_root(configured, of_cpu=pipeline.startswith(_OF_CPUS)),
        configured=operations_in(configured),
        microkernels=tuple(sorted(set(_MICROKERNEL.findall(lowered)))),
    )


def _texts(executable: Executable, phase: str) -> list[str]:
    lines: Sequence[Line] = executable.phases.get(phase, ())
    return [line.text for line in lines]


# --- operations ---


def operations_in(texts: Iterable[str]) -> Counter[str]:
    """How many operations on tensors there are of each kind; a `linalg.generic` is called by what it computes."""
    found: Counter[str] = Counter()
    header: list[str] | None = None  # of the linalg.generic that is being read
    body: list[str] | None = None
    for text in texts:
        match = _OPERATION.match(text)
        name = match["name"] if match is not None else ""
        if header is not None:
            if name == _END_OF_BODY:
                found[_generic(" ".join(header), body or [])] += 1
                header = body = None
            elif body is not None:
                body += [name] if name else []
            elif text.lstrip().startswith("^"):
                body = []
            else:
                header.append(text)
        elif name == _GENERIC:
            header = [text]
        elif name in _OTHERS or (name.partition(".")[0] in _DIALECTS and name not in _PLAIN):
            found[name] += 1
    return found


def _generic(header: str, body: Sequence[str]) -> str:
    """`a contraction`, `a reduction by maximumf`, `elementwise subf, exp`, `a copy`."""
    names = list(dict.fromkeys(name.rpartition(".")[2] for name in body))
    telling = [name for name in names if name not in _CASTS]
    shown = ", ".join((telling or names)[:_MOST_NAMES]) + (", ..." if len(telling) > _MOST_NAMES else "")
    if _REDUCTION in header:
        return "a contraction" if set(telling) in _PRODUCTS else f"a reduction by {shown}"
    return f"elementwise {shown}" if names else "a copy"


# --- tensors ---


def _tensors(texts: Iterable[str]) -> tuple[Tensor, ...]:
    return tuple(
        tensor
        for text in texts
        if text.lstrip().startswith("func.func")
        for found in _TENSOR.finditer(text)
        if (tensor := _tensor(found["access"], inside(text, found.end() - 1))) is not None
    )


def _tensor(access: str, text: str) -> Tensor | None:
    begin = text.find("tensor<")
    parts = split(inside(text, begin + len("tensor"))) if begin >= 0 else []
    shape = _SHAPE.fullmatch(parts[0]) if parts else None
    if shape is None:
        return None
    sizes = tuple(size for size in shape["sizes"].split("x") if size)
    return Tensor(access=access, shape=sizes, element=shape["element"], encoding=", ".join(parts[1:]))


# --- pipeline and tile sizes ---


def _options(texts: Iterable[str]) -> tuple[str, ...]:
    found: list[str] = []
    for text in texts:
        for match in _TRANSLATION.finditer(text):
            first, *others = split(inside(text, match.end() - 1)) or [""]
            found += [f"{name} = {value}" for name, value in _SIZE_OPTION.findall(first)]
            for other in others:
                found += split(inside(other, 0)) if other.startswith("{") else [other]
    return tuple(dict.fromkeys(found))


def _tiles_of_root(texts: Iterable[str], *, of_cpu: bool) -> dict[str, str]:
    """The tile sizes of the operation that decides for the others: the one that reduces, with the most levels."""
    found = [
        _tiles(inside(text, match.end() - 1), of_cpu=of_cpu)
        for text in texts
        for match in _CONFIGURATION.finditer(text)
    ]
    return max(
        found,
        key=lambda tiles: (any("reduction" in level for level in tiles), len(tiles), sum(map(len, tiles.values()))),
        default={},
    )


def _tiles(configuration: str, *, of_cpu: bool) -> dict[str, str]:
    body = configuration.strip()
    fields = dict(_field(item) for item in split(inside(body, 0) if body.startswith("{") else body))
    levels = split(inside(fields["tile_sizes"], 0)) if fields.get("tile_sizes", "").startswith("[") else []
    if of_cpu and len(levels) in _LEVELS:
        del fields["tile_sizes"]
        fields = {**dict(zip(_LEVELS[len(levels)], levels, strict=True)), **fields}
    trimmed = {level: _without_untiled(level, sizes) for level, sizes in fields.items()}
    return {level: sizes for level, sizes in trimmed.items() if sizes != "[]"}


def _field(item: str) -> tuple[str, str]:
    name, _, value = item.partition("=")
    return name.strip(), value.strip()


def _without_untiled(level: str, sizes: str) -> str:
    """`[1, 4, 1, 2, 0, 0, 0]` -> `[1, 4, 1, 2]`; of a reduction, `[0, 0, 0, 0, 8, 1, 1]` -> `[8, 1, 1]`."""
    if not sizes.startswith("["):
        return sizes
    numbers = split(inside(sizes, 0))
    end = 0 if "reduction" in level else -1
    while numbers and numbers[end] == "0":
        numbers.pop(end)
    return f"[{', '.join(numbers)}]"


# --- brackets ---


def inside(text: str, begin: int) -> str:
    """What is between the bracket that stands there and its counterpart; up to the end where there is none."""
    return next(
        (text[begin + 1 : place] for place, depth in _depths(text, begin) if depth == 0 and place > begin),
        text[begin + 1 :],
    )


def split(text: str) -> list[str]:
    """The parts between commas that are in no bracket."""
    commas = [place for place, depth in _depths(text, 0) if depth == 0 and text[place] == ","]
    parts = [text[begin:end] for begin, end in zip([0, *(comma + 1 for comma in commas)], [*commas, None], strict=True)]
    return [part.strip() for part in parts if part.strip()]


def _depths(text: str, begin: int) -> Iterable[tuple[int, int]]:
    """Each place from there on that is in no string, and how many brackets are open behind it."""
    depth, quoted = 0, False
    for place in range(begin, len(text)):
        character = text[place]
        if character == '"':
            quoted = not quoted
        if quoted:
            continue
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING and not (character == ">" and text[place - 1] in "-="):
            depth -= 1
        yield place, depth


# --- What the compiler decided for a dispatch on both sides -> what differs, in sentences, in its own order; pure ---


_MOST_TENSORS = 3
_TRANSPOSED = " (transposed)"
# Of these tile sizes, the first that a dispatch has says most of its code: what one step of the kernel computes.
_TELLING_TILES = ("vector_common_parallel", "mma_kind", "subgroup", "thread", "workgroup", "distribution")
_NONE = "none"
# Operations that take little of the time of a contraction or a reduction that they are fused with.
_LIGHT = ("linalg.fill", "linalg.copy", "elementwise ", "a copy", "tensor.")


def operation_changes(base: Mapping[str, int], head: Mapping[str, int], labels: Labels) -> list[str]:
    """What is fused into one side's dispatches only, or is another operation there."""
    of_base, of_head = only_there(base, head)
    if of_base and of_head:
        return [f"the operations go from {listed(of_base)} to {listed(of_head)}"]
    return [
        f"only {label} fuses {listed(operations)} into it"
        for label, operations in zip(labels, (of_base, of_head), strict=True)
        if operations
    ]


def only_there(base: Mapping[str, int], head: Mapping[str, int]) -> tuple[Counter[str], Counter[str]]:
    """The operations that base has more of, and those that head has more of."""
    of_base, of_head = Counter(dict(base)), Counter(dict(head))
    return of_base - of_head, of_head - of_base


def are_light(operations: Iterable[str]) -> bool:
    """Whether all of them take little time."""
    return all(operation.startswith(_LIGHT) for operation in operations)


def listed(operations: Mapping[str, int]) -> str:
    """`linalg.fill, a contraction and 2 times elementwise maximumf`."""
    return enumerated([name if number == 1 else f"{number:,} times {name}" for name, number in operations.items()])


# --- tensors ---


def tensor_changes(base: Sequence[Tensor], head: Sequence[Tensor], labels: Labels) -> list[str]:
    """Encodings, types and layouts of what a dispatch reads and writes."""
    if not base or not head or Counter(base) == Counter(head):
        return []
    if len(base) != len(head):
        return [f"it reads and writes {on(labels, plural(len(base), 'tensor'), f'{len(head):,}')}"]
    pairs = list(zip(_called(base), base, head, strict=True))
    sentences: list[str] = []
    for label, encoded in (
        (labels[0], [name for name, of_base, of_head in pairs if of_base.encoding and not of_head.encoding]),
        (labels[1], [name for name, of_base, of_head in pairs if of_head.encoding and not of_base.encoding]),
    ):
        sentences += [f"only {label} encodes {enumerated(encoded)} (data tiling)"] if encoded else []
    others = [
        name
        for name, of_base, of_head in pairs
        if of_base.encoding and of_head.encoding and of_base.encoding != of_head.encoding
    ]
    if others:
        sentences.append(f"{enumerated(others)} {'has' if len(others) == 1 else 'have'} another encoding")
    if transposed := [name for name, of_base, of_head in pairs if _kind(of_base, of_head) == _TRANSPOSED]:
        sentences.append(f"{enumerated(transposed)} {'is' if len(transposed) == 1 else 'are'} transposed")
    changes = [
        f"{name} goes from {of_base.text} to {of_head.text}{_kind(of_base, of_head)}"
        for name, of_base, of_head in pairs
        if (_sizes(of_base), of_base.element) != (_sizes(of_head), of_head.element)
    ]
    if len(changes) > _MOST_TENSORS:
        changes[_MOST_TENSORS:] = [f"{len(changes) - _MOST_TENSORS:,} more change"]
    return [*sentences, enumerated(changes)] if changes else sentences


def _called(tensors: Sequence[Tensor]) -> list[str]:
    """`input 0`, `input 1`, `the output`."""
    outputs = sum(tensor.access != "readonly" for tensor in tensors)
    names: list[str] = []
    counts = {"input": 0, "output": 0}
    for tensor in tensors:
        kind = "input" if tensor.access == "readonly" else "output"
        names.append("the output" if kind == "output" and outputs == 1 else f"{kind} {counts[kind]}")
        counts[kind] += 1
    return names


def _sizes(tensor: Tensor) -> tuple[str, ...]:
    """Without those of 1, which change no layout."""
    return tuple(size for size in tensor.shape if size != "1")


def _kind(base: Tensor, head: Tensor) -> str:
    """What is done to a shape, where that is plain."""
    of_base, of_head = _sizes(base), _sizes(head)
    if of_base == of_head:
        return ""
    if Counter(of_base) == Counter(of_head):
        return _TRANSPOSED
    if len(of_base) != len(of_head) or not all(size.isdecimal() for size in (*of_base, *of_head)):
        return ""
    grows = [int(after) - int(before) for before, after in zip(of_base, of_head, strict=True)]
    return " (padded)" if min(grows) >= 0 else " (without padding)" if max(grows) <= 0 else ""


# --- the code generator's configuration ---


def configuration_changes(
    executables: tuple[Executable, Executable], base: Decisions, head: Decisions, labels: Labels
) -> list[str]:
    """Pipeline and tile sizes: what one step of the kernel computes with the pipeline, the other levels after it."""
    sentences: list[str] = []
    differing = [
        name for name in dict.fromkeys((*base.tiles, *head.tiles)) if base.tiles.get(name) != head.tiles.get(name)
    ]
    main = next((name for name in _TELLING_TILES if name in base.tiles or name in head.tiles), "")
    sizes = (base.tiles.get(main, ""), head.tiles.get(main, ""))
    if pipelines_differ(*executables):
        named = [f" with {main} = {size}" if size else "" for size in sizes]
        if sizes[0] and sizes[1]:
            named[1] = f" with {sizes[1]}"
        pipelines = [side.pipeline or "no pipeline" for side in (base, head)]
        sentences.append(f"the pipeline goes from {pipelines[0]}{named[0]} to {pipelines[1]}{named[1]}")
    elif main in differing:
        sentences.append(f"{main} goes from {sizes[0] or _NONE} to {sizes[1] or _NONE}")
    others = [
        f"{name} from {base.tiles.get(name, _NONE)} to {head.tiles.get(name, _NONE)}"
        for name in differing
        if name != main
    ]
    if others:
        others[0] = others[0].replace(" from ", " goes from ", 1)
        sentences.append(enumerated(others))
    return [*sentences, *_option_changes(base.options, head.options, labels)]


def _option_changes(base: Sequence[str], head: Sequence[str], labels: Labels) -> list[str]:
    """Options of the pipeline: with another value on each side, or on one side alone."""
    of_base, of_head = (
        {name: value for name, _, value in (option.partition(" = ") for option in side)} for side in (base, head)
    )
    both = [name for name in of_base if name in of_head and of_base[name] != of_head[name]]
    sentences = [f"the pipeline's option {name} goes from {of_base[name]} to {of_head[name]}" for name in both]
    for label, here, there in ((labels[0], base, of_head), (labels[1], head, of_base)):
        if alone := [option for option in here if option.partition(" = ")[0] not in there]:
            sentences.append(f"only {label} has the pipeline's option {enumerated(alone)}")
    return sentences


def lowering_changes(base: Decisions, head: Decisions, labels: Labels) -> list[str]:
    """Operations that become others by the time that dispatches are configured, and microkernels."""
    sentences: list[str] = []
    if not any(only_there(base.operations, head.operations)):
        of_base, of_head = only_there(base.configured, head.configured)
        if of_base or of_head:
            kinds = (listed(of_base) or _NONE, listed(of_head) or _NONE)
            sentences.append(f"once it is configured, the operations go from {kinds[0]} to {kinds[1]}")
    for label, here, there in ((labels[0], base, head), (labels[1], head, base)):
        if alone := [name for name in here.microkernels if name not in there.microkernels]:
            sentences.append(f"only {label} calls the microkernel {enumerated(alone)}")
    return sentences
