"""A dispatch's IR -> what the compiler decided for it -> what differs on two sides, in sentences.

Decisions are what is fused, layouts and types, pipeline and tile sizes. They are read from the lines that
`harness.ir.canonical` makes, where attributes stand in place and an operation begins a line; releases from 3.0 on spell
these things in few ways.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    lines = iter(texts)
    for text in lines:
        name = _operation(text)
        if name == _GENERIC:
            found[_generic(*_read_generic(text, lines))] += 1
        elif name in _OTHERS or (name.partition(".")[0] in _DIALECTS and name not in _PLAIN):
            found[name] += 1
    return found


def _operation(text: str) -> str:
    match = _OPERATION.match(text)
    return match["name"] if match is not None else ""


def _read_generic(header: str, lines: Iterator[str]) -> tuple[str, list[str]]:
    """The attributes of a linalg.generic, and the operations of its body."""
    body: list[str] | None = None
    for text in lines:
        name = _operation(text)
        if name == _END_OF_BODY:
            break
        if text.lstrip().startswith("^"):
            body = []
        elif body is None:
            header += text
        elif name:
            body.append(name)
    return header, body or []


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
    found = []
    for text in texts:
        for dispatched in _TENSOR.finditer(text) if text.lstrip().startswith("func.func") else ():
            _, _, tensor = inside(text, dispatched.end() - 1).partition("tensor")
            shape, *encoding = split(inside(tensor, 0)) or [""]
            if match := _SHAPE.fullmatch(shape):
                sizes = tuple(size for size in match["sizes"].split("x") if size)
                element, access = match["element"], dispatched["access"]
                found.append(Tensor(access=access, shape=sizes, element=element, encoding=", ".join(encoding)))
    return tuple(found)


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
    items = (item.partition("=") for item in split(inside(body, 0) if body.startswith("{") else body))
    fields = {name.strip(): value.strip() for name, _, value in items}
    levels = split(inside(fields["tile_sizes"], 0)) if fields.get("tile_sizes", "").startswith("[") else []
    if of_cpu and len(levels) in _LEVELS:
        del fields["tile_sizes"]
        fields = {**dict(zip(_LEVELS[len(levels)], levels, strict=True)), **fields}
    trimmed = {level: _without_untiled(level, sizes) for level, sizes in fields.items()}
    return {level: sizes for level, sizes in trimmed.items() if sizes != "[]"}


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


# --- What differs, in sentences, in the compiler's own order ---

_MOST_TENSORS = 3
_TRANSPOSED = "transposed"
# Of these tile sizes, the first that a dispatch has says most of its code: what one step of the kernel computes.
_TELLING_TILES = ("vector_common_parallel", "mma_kind", "subgroup", "thread", "workgroup", "distribution")
_NONE = "none"
# Operations that take little of the time of a contraction or a reduction that they are fused with.
_LIGHT = ("linalg.fill", "linalg.copy", "elementwise ", "a copy", "tensor.")


def operation_changes(base: Mapping[str, int], head: Mapping[str, int], labels: Labels) -> list[str]:
    """What is fused into one side's dispatches only, or is another operation there."""
    only = only_there(base, head)
    if all(only):
        return [f"the operations go from {listed(only[0])} to {listed(only[1])}"]
    return [
        f"only {label} fuses {listed(operations)} into it"
        for label, operations in zip(labels, only, strict=True)
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
    kinds: dict[str, list[str]] = {}
    changes = []
    for name, old, new in zip(_called(base), base, head, strict=True):
        kind = _kind(old, new)
        if bool(old.encoding) != bool(new.encoding):
            label = labels[0] if old.encoding else labels[1]
            kinds.setdefault(f"encoded on {label} alone (data tiling)", []).append(name)
        elif old.encoding != new.encoding:
            kinds.setdefault("encoded otherwise", []).append(name)
        if kind == _TRANSPOSED:
            kinds.setdefault("transposed", []).append(name)
        if (_sizes(old), old.element) != (_sizes(new), new.element):
            changes.append(f"{_goes(name, old.text, new.text)}{f' ({kind})' if kind else ''}")
    if len(changes) > _MOST_TENSORS:
        changes[_MOST_TENSORS:] = [f"{len(changes) - _MOST_TENSORS:,} more change"]
    sentences = [f"{enumerated(names)} {'is' if len(names) == 1 else 'are'} {kind}" for kind, names in kinds.items()]
    return [*sentences, enumerated(changes)] if changes else sentences


def _goes(name: str, old: str, new: str) -> str:
    return f"{name} goes from {old} to {new}"


def _called(tensors: Sequence[Tensor]) -> list[str]:
    """`input 0`, `input 1`, `the output`."""
    kinds = ["input" if tensor.access == "readonly" else "output" for tensor in tensors]
    numbered = [f"{kind} {kinds[:place].count(kind)}" for place, kind in enumerate(kinds)]
    return numbered if kinds.count("output") != 1 else [name.replace("output 0", "the output") for name in numbered]


def _sizes(tensor: Tensor) -> tuple[str, ...]:
    """Without those of 1, which change no layout."""
    return tuple(size for size in tensor.shape if size != "1")


def _kind(base: Tensor, head: Tensor) -> str:
    """What is done to a shape, where that is plain."""
    sizes = of_base, of_head = _sizes(base), _sizes(head)
    if of_base == of_head:
        return ""
    if Counter(of_base) == Counter(of_head):
        return _TRANSPOSED
    if len(of_base) != len(of_head) or not all(size.isdecimal() for side in sizes for size in side):
        return ""
    grows = [int(after) - int(before) for before, after in zip(of_base, of_head, strict=True)]
    return "padded" if min(grows) >= 0 else "without padding" if max(grows) <= 0 else ""


# --- the code generator's configuration ---


def configuration_changes(executables: tuple[Executable, Executable], base: Decisions, head: Decisions) -> list[str]:
    """Pipeline and tile sizes: what one step of the kernel computes with the pipeline, the other levels after it."""
    sentences: list[str] = []
    main = next((name for name in _TELLING_TILES if name in base.tiles or name in head.tiles), "")
    tiles = _differing(base.tiles, head.tiles)
    if pipelines_differ(*executables):
        old, new = base.tiles.get(main), head.tiles.get(main)
        was = f"{base.pipeline or 'no pipeline'}{f' with {main} = {old}' if old else ''}"
        now = f" with {new}" if old and new else f" with {main} = {new}" if new else ""
        sentences.append(_goes("the pipeline", was, f"{head.pipeline or 'no pipeline'}{now}"))
    elif main in tiles:
        sentences.append(_goes(main, *tiles[main]))
    if others := {name: both for name, both in tiles.items() if name != main}:
        sentences.append(enumerated([_goes(name, *both) for name, both in others.items()]))
    of_base, of_head = (
        {name: value or "set" for name, _, value in (option.partition(" = ") for option in side.options)}
        for side in (base, head)
    )
    options = _differing(of_base, of_head)
    return [*sentences, *(f"the pipeline's option {_goes(name, *both)}" for name, both in options.items())]


def _differing(base: Mapping[str, str], head: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """What has another value on each side, by name; "none" where a side has none."""
    both = {name: (base.get(name, _NONE), head.get(name, _NONE)) for name in (*base, *head)}
    return {name: values for name, values in both.items() if values[0] != values[1]}


def lowering_changes(base: Decisions, head: Decisions, labels: Labels) -> list[str]:
    """Operations that become others by the time that dispatches are configured, and microkernels."""
    sentences: list[str] = []
    if not any(only_there(base.operations, head.operations)):
        only = only_there(base.configured, head.configured)
        if any(only):
            was, now = (listed(operations) or _NONE for operations in only)
            sentences.append(f"once it is configured, the operations go from {was} to {now}")
    kernels = (base.microkernels, head.microkernels)
    for label, here, there in zip(labels, kernels, kernels[::-1], strict=True):
        if alone := [name for name in here if name not in there]:
            sentences.append(f"only {label} calls the microkernel {enumerated(alone)}")
    return sentences
