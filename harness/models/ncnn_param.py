"""ncnn's .param files: the layers of a network as text, without their weights.

    7767517                                  the format's mark
    3 4                                      how many layers and blobs
    Input        data   0 1 x                type, name, how many inputs and outputs, their blobs, key=value ...
    Split        twice  1 2 x a b
    Convolution  conv   1 1 a y 0=64 1=3 -23310=1,0.2      keys from -23300 down hold lists: their length, then values

What the published super-resolution networks use is read, and all else refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Number = int | float | tuple[float, ...]

_MAGIC = "7767517"
_FIRST_LIST = -23300
_REQUIRED = None

# By type of layer: its keys by their number in the file, and what those are that are left out. A key that is not here
# would change what the layer does (a stride, say), so it is refused.
_KEYS: Mapping[str, Mapping[int, tuple[str, Number | None]]] = {
    "Input": {},
    "Split": {},
    "Convolution": {
        0: ("channels", _REQUIRED),
        1: ("kernel", _REQUIRED),
        4: ("padding", 0),
        5: ("has_bias", 0),
        6: ("weight_count", _REQUIRED),
        9: ("activation", 0),
        10: ("activation_parameters", ()),
    },
    "PReLU": {0: ("slope_count", _REQUIRED)},
    "Concat": {0: ("axis", 0)},
    "Eltwise": {0: ("operation", 0), 1: ("coefficients", ())},
    "BinaryOp": {0: ("operation", 0)},
    "Interp": {0: ("method", _REQUIRED), 1: ("height_scale", _REQUIRED), 2: ("width_scale", _REQUIRED)},
    "PixelShuffle": {0: ("factor", _REQUIRED)},
}
_LISTS = frozenset({"activation_parameters", "coefficients"})
_REALS = frozenset({"height_scale", "width_scale"})


class FormatError(ValueError):
    """What is wrong with a file, as a phrase that follows its path: `layer 3: ...`."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One layer as its line has it.

    Attributes:
        options: Its keys by their names here, those left out included.
    """

    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    options: Mapping[str, Number]


def parse_param(text: str) -> list[Line]:
    """The layers in the file's order, in which each comes after those whose blobs it reads.

    Raises:
        FormatError: The text is cut short, too long, or has a layer or a key that this reader does not know.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or lines[0].strip() != _MAGIC:
        raise FormatError(f"its first line is not {_MAGIC}, as an ncnn .param file's is")
    layers, blobs = _counts(lines[1] if len(lines) > 1 else "")
    found = len(lines) - 2
    if found != layers:
        raise FormatError(f"it has {found} layers where its second line says {layers}")
    parsed = [_parse(line, f"layer {number}") for number, line in enumerate(lines[2:], 1)]
    made = set[str]()
    for number, line in enumerate(parsed, 1):
        for blob in line.inputs:
            if blob not in made:
                raise FormatError(f"layer {number} ({line.name}) reads blob {blob}, which no layer before it makes")
        for blob in line.outputs:
            if blob in made:
                raise FormatError(f"layer {number} ({line.name}) makes blob {blob} a second time")
            made.add(blob)
    if len(made) != blobs:
        raise FormatError(f"it has {len(made)} blobs where its second line says {blobs}")
    return parsed


def _counts(line: str) -> tuple[int, int]:
    try:
        layers, blobs = (int(word) for word in line.split())
    except ValueError:
        raise FormatError(f"its second line is {line.strip()[:40]!r}, not the numbers of layers and blobs") from None
    return layers, blobs


def _parse(line: str, where: str) -> Line:
    words = line.split()
    try:
        kind, name, inputs, outputs = words[0], words[1], int(words[2]), int(words[3])
    except (IndexError, ValueError):
        raise FormatError(f"{where} is {line.strip()[:60]!r}, not type, name and two counts of blobs") from None
    where = f"{where} ({name})"
    if kind not in _KEYS:
        raise FormatError(f"{where} is of the type {kind}, which is not supported; known are {', '.join(_KEYS)}")
    blobs, options = words[4 : 4 + inputs + outputs], words[4 + inputs + outputs :]
    if len(blobs) != inputs + outputs or any("=" in blob for blob in blobs) or min(inputs, outputs) < 0:
        raise FormatError(f"{where} does not name its {inputs} inputs and {outputs} outputs")
    if outputs != 1 and kind != "Split":
        raise FormatError(f"{where} has {outputs} outputs, where {kind} has one")
    return Line(
        kind=kind,
        name=name,
        inputs=tuple(blobs[:inputs]),
        outputs=tuple(blobs[inputs:]),
        options=_options(options, kind, where),
    )


def _options(words: Sequence[str], kind: str, where: str) -> dict[str, Number]:
    known = _KEYS[kind]
    options: dict[str, Number] = {}
    for word in words:
        key, _, text = word.partition("=")
        try:
            number = int(key)
        except ValueError:
            raise FormatError(f"{where} has {word[:40]!r}, which is no key=value") from None
        is_list = number <= _FIRST_LIST
        position = _FIRST_LIST - number if is_list else number
        name = known[position][0] if position in known else ""
        if not name or is_list != (name in _LISTS):
            raise FormatError(f"{where} has the key {key}, which is not supported for {kind}")
        try:
            options[name] = _list(text) if is_list else float(text) if name in _REALS else int(text)
        except ValueError:
            raise FormatError(f"{where} has {word[:40]!r}, whose value cannot be read") from None
    for name, default in known.values():
        if name not in options:
            if default is None:
                raise FormatError(f"{where} does not say its {name.replace('_', ' ')}")
            options[name] = default
    return options


def _list(text: str) -> tuple[float, ...]:
    """`2,0.2,1.0` -> (0.2, 1.0): the length comes first."""
    length, *values = text.split(",")
    if int(length) != len(values):
        raise ValueError(text)
    return tuple(float(value) for value in values)
