"""A dispatch's IR -> what the compiler decided for it -> what differs on two sides, in sentences.

Decisions are what is fused, layouts and types, pipeline and tile sizes. They are read from the lines that
`harness.ir.differences` makes, where attributes stand in place and an operation begins a line.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.explain.summary_sentence import Labels, enumerated, on
from harness.ir.differences import Executable, open_brackets, pipelines_differ
from harness.text import plural

_FORMED = "flow"  # the first phase that has dispatches
_CONFIGURED, _LOWERED = "executable-configurations", "executable-targets"

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
_PRODUCTS = ({"mulf", "addf"}, {"muli", "addi"})
_CASTS = frozenset(("extf", "extsi", "extui", "truncf", "trunci", "sitofp", "uitofp", "fptosi", "fptoui"))
_MOST_NAMES = 3

_TENSOR = re.compile(r"dispatch\.tensor<(?=(?P<access>\w+):)")
_SHAPE = re.compile(r"(?P<sizes>(?:(?:\d+|\?)x)*)(?P<element>.+)")
_TRANSLATION = re.compile(r"translation_info<")
_SIZE_OPTION = re.compile(r"\b((?:workgroup|subgroup)_size) = (\[[^\]]*\]|\d+)")
_CONFIGURATION = re.compile(r"lowering_config<")
_MICROKERNEL = re.compile(r"\biree_uk_\w+")


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """A tensor that a dispatch reads or writes."""

    is_input: bool
    shape: tuple[str, ...]  # Its sizes; `?` where the run decides
    element: str  # `f32`
    encoding: str = ""  # How it is laid out, as MLIR writes it; "" where it is row-major

    @property
    def text(self) -> str:
        """`8x12x8xf32`, `8x12x8xf32 (encoded)`."""
        return f"{'x'.join((*self.shape, self.element))}{' (encoded)' if self.encoding else ''}"


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """What the compiler decided for one dispatch, as far as its phases are there."""

    operations: Counter[str]  # Those that it is formed of, and how many of each
    tensors: tuple[Tensor, ...]  # In the order of its arguments
    pipeline: str  # Of the code generator; "" where it is given none
    options: Mapping[str, str]  # Of the pipeline: `enable_loop_peeling`: `set`, `workgroup_size`: `[64, 1, 1]`
    # Of the operation that decides: `vector_common_parallel`: `[1, 4, 1, 2]`. Loops that a level does not tile are left
    # out behind the last parallel one, and before the first reduction.
    tiles: Mapping[str, str]
    microkernels: tuple[str, ...]  # Names of those that it calls


def decisions_of(executable: Executable) -> Decisions:
    """What the compiler decided for an executable."""
    formed, configured, lowered = (
        [line.text for line in executable.phases.get(phase, ())] for phase in (_FORMED, _CONFIGURED, _LOWERED)
    )
    return Decisions(
        operations=operations_in(formed),
        tensors=tuple(_tensors(formed)),
        pipeline=executable.pipeline,
        options=_options(configured),
        tiles=_tiles_of_root(configured),
        microkernels=tuple(sorted(set(_MICROKERNEL.findall(" ".join(lowered))))),
    )


def operations_in(texts: Iterable[str]) -> Counter[str]:
    """How many operations on tensors there are of each kind; a `linalg.generic` is called by what it computes."""
    found: Counter[str] = Counter()
    lines = iter(texts)
    for text in lines:
        name = _operation(text)
        if name == _GENERIC:
            found[_generic(text, lines)] += 1
        elif name in _OTHERS or (name.partition(".")[0] in _DIALECTS and name not in _PLAIN):
            found[name] += 1
    return found


def _operation(text: str) -> str:
    match = _OPERATION.match(text)
    return match["name"] if match is not None else ""


def _generic(header: str, lines: Iterator[str]) -> str:
    """`a generic sum of products`, `a reduction by maximumf`, `elementwise subf, exp`, `a copy`; its lines are read."""
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
            body.append(name.rpartition(".")[2])
    names = list(dict.fromkeys(body or ()))
    telling = [name for name in names if name not in _CASTS]
    shown = ", ".join((telling or names)[:_MOST_NAMES]) + (", ..." if len(telling) > _MOST_NAMES else "")
    if '"reduction"' in header:
        return "a generic sum of products" if set(telling) in _PRODUCTS else f"a reduction by {shown}"
    return f"elementwise {shown}" if names else "a copy"


def _tensors(texts: Iterable[str]) -> Iterator[Tensor]:
    for text in texts:
        for dispatched in _TENSOR.finditer(text) if text.lstrip().startswith("func.func") else ():
            _, _, tensor = inside(text, dispatched.end() - 1).partition("tensor")
            shape, *encoding = split(inside(tensor, 0)) or [""]
            if match := _SHAPE.fullmatch(shape):
                yield Tensor(
                    is_input=dispatched["access"] == "readonly",
                    shape=tuple(size for size in match["sizes"].split("x") if size),
                    element=match["element"],
                    encoding=", ".join(encoding),
                )


def _options(texts: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        for match in _TRANSLATION.finditer(text):
            first, *others = split(inside(text, match.end() - 1)) or [""]
            found |= dict(_SIZE_OPTION.findall(first))
            for other in others:
                for option in split(inside(other, 0)) if other.startswith("{") else [other]:
                    name, _, value = option.partition(" = ")
                    found[name] = value or "set"
    return found


def _tiles_of_root(texts: Iterable[str]) -> dict[str, str]:
    """The tile sizes of the operation that decides for the others: the one that reduces, with the most levels."""
    found = [_tiles(inside(text, match.end() - 1)) for text in texts for match in _CONFIGURATION.finditer(text)]
    return max(
        found,
        key=lambda tiles: (any("reduction" in level for level in tiles), len(tiles), sum(map(len, tiles.values()))),
        default={},
    )


def _tiles(configuration: str) -> dict[str, str]:
    """By level; a level without `[1, 4, 1, 2, 0, 0, 0]`'s zeros, of a reduction without those before its loops."""
    body = configuration.strip()
    found = {}
    for item in split(inside(body, 0) if body.startswith("{") else body):
        level, _, sizes = (word.strip() for word in item.partition("="))
        if sizes.startswith("["):
            numbers = split(inside(sizes, 0))
            while numbers and numbers[0 if "reduction" in level else -1] == "0":
                numbers.pop(0 if "reduction" in level else -1)
            sizes = f"[{', '.join(numbers)}]" if numbers else ""
        if sizes:
            found[level] = sizes
    return found


# --- brackets ---


def inside(text: str, begin: int) -> str:
    """What is between the bracket that stands there and its counterpart; up to the end where there is none."""
    return next(
        (text[begin + 1 : place] for place, opened in open_brackets(text, begin) if not opened and place > begin),
        text[begin + 1 :],
    )


def split(text: str) -> list[str]:
    """The parts between commas that are in no bracket."""
    commas = [place for place, opened in open_brackets(text) if not opened and text[place] == ","]
    parts = [text[begin:end] for begin, end in zip([0, *(comma + 1 for comma in commas)], [*commas, None], strict=True)]
    return [part.strip() for part in parts if part.strip()]


# --- what differs, in sentences, in the compiler's own order ---

_MOST_TENSORS = 3
# Of these tile sizes, the first that a dispatch has says most of its code: what one step of the kernel computes.
_TELLING_TILES = ("vector_common_parallel", "mma_kind", "subgroup", "thread", "workgroup", "distribution")
_NONE = "none"
# Operations that take little of the time of a contraction or a reduction that they are fused with.
_LIGHT = ("linalg.fill", "linalg.copy", "elementwise ", "a copy", "tensor.")


def operation_changes(base: Counter[str], head: Counter[str], labels: Labels) -> list[str]:
    """What is fused into one side's dispatches only, or is another operation there."""
    only = base - head, head - base
    if all(only):
        return [f"the operations go from {listed(only[0])} to {listed(only[1])}"]
    return [
        f"only {label} fuses {listed(operations)} into it"
        for label, operations in zip(labels, only, strict=True)
        if operations
    ]


def are_light(operations: Iterable[str]) -> bool:
    """Whether all of them take little time."""
    return all(operation.startswith(_LIGHT) for operation in operations)


def listed(operations: Mapping[str, int]) -> str:
    """`linalg.fill, a generic sum of products and 2 times elementwise maximumf`."""
    return enumerated([name if number == 1 else f"{number:,} times {name}" for name, number in operations.items()])


def tensor_changes(base: Sequence[Tensor], head: Sequence[Tensor], labels: Labels) -> list[str]:
    """Encodings, types and layouts of what a dispatch reads and writes; sizes of 1 change no layout."""
    if not base or not head or Counter(base) == Counter(head):
        return []
    if len(base) != len(head):
        return [f"it reads and writes {on(labels, plural(len(base), 'tensor'), f'{len(head):,}')}"]
    changes = []
    for place, (old, new) in enumerate(zip(base, head, strict=True)):
        name = f"input {place}" if old.is_input else f"output {place - sum(each.is_input for each in base)}"
        sizes, other_sizes = ([size for size in each.shape if size != "1"] for each in (old, new))
        if (sizes, old.element, bool(old.encoding)) != (other_sizes, new.element, bool(new.encoding)):
            changes.append(_goes(name, old.text, new.text))
        elif old.encoding != new.encoding:
            changes.append(f"{name} is encoded otherwise")
    if len(changes) > _MOST_TENSORS:
        changes[_MOST_TENSORS:] = [f"{len(changes) - _MOST_TENSORS:,} more change"]
    return [enumerated(changes)] if changes else []


def _goes(name: str, old: str, new: str) -> str:
    return f"{name} goes from {old} to {new}"


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
    options = _differing(base.options, head.options)
    return [*sentences, *(f"the pipeline's option {_goes(name, *both)}" for name, both in options.items())]


def _differing(base: Mapping[str, str], head: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """What has another value on each side, by name; "none" where a side has none."""
    both = {name: (base.get(name, _NONE), head.get(name, _NONE)) for name in (*base, *head)}
    return {name: values for name, values in both.items() if values[0] != values[1]}


def microkernel_changes(base: Decisions, head: Decisions, labels: Labels) -> list[str]:
    """Microkernels that one side alone calls."""
    kernels = (base.microkernels, head.microkernels)
    return [
        f"only {label} calls the microkernel {enumerated(alone)}"
        for label, here, there in zip(labels, kernels, kernels[::-1], strict=True)
        if (alone := [name for name in here if name not in there])
    ]
