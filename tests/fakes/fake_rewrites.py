"""Rewrites that do one thing each, most of them wrong; they are run by the harness's child process, by name."""

import os
import sys
import time
from collections.abc import Callable

import iree.compiler
from iree.compiler import ir

from harness.rewrites.operations import find


def _change(module: ir.Module, changed: Callable[[float], float]) -> int:
    attributes = [op.attributes for op in find(module, "arith.constant")]
    scalars = [each for each in attributes if isinstance(each["value"], ir.FloatAttr)]
    for each in scalars:
        each["value"] = ir.FloatAttr.get(each["value"].type, changed(each["value"].value))
    return len(scalars)


def nothing(module: ir.Module) -> int:
    return 0


def times(module: ir.Module, *, factor: float = 2.0) -> int:
    """Multiply all scalar constants."""
    return _change(module, lambda value: value * factor)


def plus(module: ir.Module, *, term: float = 1.0) -> int:
    """Add to all scalar constants."""
    return _change(module, lambda value: value + term)


def matched_and_left_alone(module: ir.Module) -> int:
    return 3


def unroll(module: ir.Module, **options: object) -> int:
    """Say which options came."""
    raise ValueError(f"{options!r}")


def raises(module: ir.Module) -> int:
    raise KeyError("two\nlines")


def returns_none(module: ir.Module) -> None:
    times(module)


def returns_negative(module: ir.Module) -> int:
    return -1


def renames_the_entry(module: ir.Module) -> int:
    for op in module.body.operations:
        op.operation.attributes["sym_name"] = ir.StringAttr.get("other")
    return 1


def raises_no_text(module: ir.Module) -> int:
    """Raise with a path that is no UTF-8, as Python decodes it."""
    raise ValueError("\udcff.mlir")


def breaks(module: ir.Module) -> int:
    """Leave a sum without its second operand's type."""
    for op in find(module, "linalg.generic"):
        del op.attributes["iterator_types"]
    return 1


def denies(module: ir.Module) -> int:
    """Change something, and say that nothing matched."""
    times(module)
    return 0


def prints(module: ir.Module) -> int:
    """Print on both streams, much."""
    for stream in (sys.stdout, sys.stderr):
        stream.write('{"matched": 99}\n' * 10_000)
    return times(module)


def talks(module: ir.Module) -> int:
    """Print a little, on one stream and the other."""
    print("one")
    print("two", file=sys.stderr)
    print("three")
    return times(module)


def hangs(module: ir.Module) -> int:
    time.sleep(600)
    return 0


def hoards(module: ir.Module) -> int:
    """Use more and more memory, for as long as it is let."""
    hoard = []
    while True:
        hoard.append(b"x" * (1 << 24))


def aborts(module: ir.Module) -> int:
    sys.stderr.write("Assertion `it is so' failed.\n")
    sys.stderr.flush()
    os.abort()


def exits(module: ir.Module, *, status: int = 0) -> int:
    sys.exit(status)


def tells_whose_compiler(module: ir.Module) -> int:
    raise ValueError(f"iree.compiler is in {next(iter(iree.compiler.__path__))}, isolated {sys.flags.isolated}")


def tells_target(module: ir.Module, *, target: dict[str, str]) -> int:
    sys.stdout.write(f"{target['name']} {'avx512f' in target['features']} {target['triple'][:6]}\n")
    return 0
