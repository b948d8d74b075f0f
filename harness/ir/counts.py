"""What is counted in the IR of a case: its ops at the compiler's phases, and what encodings cost in memory.

An encoding lays a tensor out in tiles, and rounds sizes up to whole ones. How many bytes that adds is known where each
encoding has got the layout that its device wants: a tensor of 70x90 f32 in tiles of 16x16 takes 5x6 tiles, 30,720 bytes
instead of 25,200. Where sizes are dynamic it depends on the inputs, and is worst where a size is 1 and its tile whole.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from harness.errors import CaseError, UsageError
from harness.ir.dump import ask, check_phases
from harness.metrics import ENCODINGS
from harness.process import Limits
from harness.records.case import Case
from harness.records.run import EncodedTensor, Storage
from harness.toolchain import Toolchain

HOST = "host"
EXECUTABLES = "executables"
PLACES = (HOST, EXECUTABLES)

# What IREE rounds a size up to, where a microkernel says at run time how large its tiles are.
RUN_TIME_TILE = 16
_PACKED_BITS = (2, 4)  # elements that share a byte; i1 has one of its own


@dataclass(frozen=True, kw_only=True)
class OpCounts:
    """How many of which ops the IR has at one phase, by op name.

    All that MLIR walks over is counted, but for the outermost module: a terminator too, and the body of a named linalg
    op, which its text does not show. An executable counts once, however often it is dispatched.
    """

    host: Mapping[str, int]  # Ops outside executables, the ops that hold executables among them
    # Ops inside executables, and inside dispatch regions, which are to become executables
    executables: Mapping[str, int]

    @property
    def total(self) -> dict[str, int]:
        """Ops anywhere."""
        return dict(Counter(self.host) + Counter(self.executables))

    def matching(self, pattern: str) -> dict[str, int]:
        """The ops that a pattern matches: `memref.alloc`, `linalg.*`, `host:arith.*`, `executables:memref.alloc*`."""
        place, name = _split(pattern)
        ops = {"": self.total, HOST: self.host, EXECUTABLES: self.executables}[place]
        return {op: count for op, count in ops.items() if fnmatchcase(op, name)}

    def count(self, pattern: str) -> int:
        """How many ops a pattern matches."""
        return sum(self.matching(pattern).values())


@dataclass(frozen=True, kw_only=True)
class Inspected:
    """The IR of a case."""

    case: Case
    counts: dict[str, OpCounts]  # Ops by phase, in the compiler's order
    texts: dict[str, str]  # The IR itself, weights left out, by phase; {} where it was not asked for


def check_ops(patterns: Iterable[str]) -> None:
    """Refuse a place that there is not. An op that no dialect has is fine: its count is 0."""
    for pattern in patterns:
        _split(pattern)


def check_wanted(wanted: Mapping[str, Sequence[str]]) -> None:
    """Refuse phases and places that there are not."""
    check_phases(wanted)
    for patterns in wanted.values():
        check_ops(patterns)


def select_counts(counts: Mapping[str, OpCounts], wanted: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The counts that a user asks for."""
    return {
        f"{phase}/{pattern}": counts[phase].count(pattern) for phase, patterns in wanted.items() for pattern in patterns
    }


def _split(pattern: str) -> tuple[str, str]:
    """A pattern's place, "" for anywhere, and its op name with wildcards."""
    place, colon, name = pattern.rpartition(":")
    if colon and place not in PLACES:
        raise UsageError(f"there is no place {place!r}, as in {pattern!r}; write {HOST}:... or {EXECUTABLES}:...")
    return place, name


def count_files(files: Mapping[str, Path], *, toolchain: Toolchain, limits: Limits) -> dict[str, OpCounts]:
    """Count the ops in files of IR, as `dump_phases` gives them."""
    answers = ask("ops", files, f" at {', '.join(files)}", toolchain=toolchain, limits=limits)
    return {phase: OpCounts(**counts) for phase, counts in answers.items()}


def encoded_tensor(
    name: str, *, element_bits: int, sizes: Sequence[tuple[int, bool]], layouts: Sequence[Sequence[int]]
) -> EncodedTensor:
    """What a tensor costs."""
    tiled = [[tile or RUN_TIME_TILE for tile in tiles] for tiles in layouts]

    def bytes_of(numbers: Sequence[int]) -> int:
        bits = element_bits if element_bits in _PACKED_BITS else max(element_bits, 8)
        return -(-math.prod(numbers) * bits // 8)

    def worst(size: int, is_dynamic: bool, tile: int) -> float:
        return tile if is_dynamic else padded(size, tile) / size if size else 1.0

    return EncodedTensor(
        name=name,
        encoded_bytes=max(
            bytes_of([padded(size, tile) for (size, _), tile in zip(sizes, tiles, strict=True)]) for tiles in tiled
        ),
        unpadded_bytes=bytes_of([size for size, _ in sizes]),
        worst_ratio=max(
            math.prod(worst(*size, tile) for size, tile in zip(sizes, tiles, strict=True)) for tiles in tiled
        ),
    )


def padded(size: int, tile: int) -> int:
    """A size rounded up to whole tiles."""
    return -(-size // tile) * tile


def read_storage(file: Path, inputs: Sequence[Sequence[int]], *, toolchain: Toolchain, limits: Limits) -> Storage:
    """Find the encoded tensors in a program's IR at phase `encodings`, as `dump_phases` gives it."""
    shapes = [list(shape) for shape in inputs]
    answers = ask("layouts", {ENCODINGS: file}, "", toolchain=toolchain, limits=limits, inputs=shapes)
    if "unknown" in answers:
        raise CaseError("ir", f"what encodings cost in memory is not known: {answers['unknown']}; leave storage out")
    return Storage(tensors=tuple(encoded_tensor(**tensor) for tensor in answers[ENCODINGS]))
