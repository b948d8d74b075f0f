"""What the compiler decided for a dispatch on both sides -> what differs, in sentences, in its own order; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from harness.explain.decisions import Decisions, Tensor
from harness.explain.phrases import Labels, enumerated, on
from harness.ir.differences import Executable, pipelines_differ
from harness.text import plural

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
