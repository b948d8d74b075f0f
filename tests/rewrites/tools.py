"""Rewriting, compiling and running small programs, and pieces of programs, for the tests of all rewrites."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import iree.runtime as rt
import numpy as np
from iree.compiler import ir
from numpy.typing import NDArray

from harness import process
from harness.compile.iree_compile import parse_statistics
from harness.models import residual_dense_block
from harness.toolchain import find_toolchain
from tests.builders import CPU_FLAGS

Array = NDArray[Any]
Rewrite = Callable[[ir.Module], int]

AVX512_TARGET = {"name": "znver4", "features": "+avx2,+avx512f", "triple": "x86_64-unknown-unknown-eabi-elf"}
COMPILE_S = 60.0


def rewritten(text: str, *rewrites: Rewrite) -> tuple[str, list[int]]:
    """The module after some rewrites, verified and printed, and how many places each has matched."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        matched = [rewrite(module) for rewrite in rewrites]
        module.operation.verify()
        return str(module), matched


def printed(text: str) -> str:
    """The same program with names and layout as MLIR prints them."""
    return rewritten(text)[0]


def assert_rewritten(before: str, after: str, *rewrites: Rewrite, places: int = 1) -> None:
    """Check the exact result, all names apart, and how many places all rewrites matched."""
    text, matched = rewritten(before, *rewrites)
    assert text == printed(after)
    assert sum(matched) == places


def assert_left_alone(text: str, rewrite: Rewrite) -> None:
    """Check that nothing is matched and nothing changed."""
    assert_rewritten(text, text, rewrite, places=0)


def iree_compile(text: str, *flags: str, seconds: float = COMPILE_S) -> bytes:
    """What iree-compile makes of a module; one of util.func is at phase `input`, one of flow.executable at `flow`.

    It is stopped after so many seconds and tried once more: a compile of a product of 64x128x32 hung once for five
    minutes, where it takes one second.
    """
    phase = "flow" if "flow.executable" in text else "input" if "util.func" in text else ""
    begin = [f"--compile-from={phase}"] if phase else []
    with TemporaryDirectory() as folder:
        (Path(folder) / "in.mlir").write_text(text)
        command = [str(find_toolchain().iree_compile), "in.mlir", "-o", "out", *CPU_FLAGS, *begin, *flags]
        for _ in range(2):
            finished = process.run(command, cwd=Path(folder), limits=process.Limits(seconds=seconds))
            if finished.limit is None:
                break
        assert finished.ok, finished.stderr or finished.limit
        return (Path(folder) / "out").read_bytes()


def lowered(text: str, phase: str, *flags: str) -> str:
    """The module when the compiler has come to a phase."""
    return iree_compile(text, f"--compile-to={phase}", *flags).decode(errors="replace")


def configurations_taken(text: str, *flags: str) -> list[str]:
    """The lowering configurations of all operations as the CPU backend has them before it generates code."""
    return re.findall(r"#iree_cpu\.lowering_config<[^>]*>", lowered(text, "executable-configurations", *flags))


class Program:
    """A program whose functions are called with arrays of f32."""

    def __init__(self, text: str, *flags: str, seconds: float = COMPILE_S) -> None:
        with TemporaryDirectory() as folder:
            file = Path(folder) / "statistics.txt"
            dump = ("--iree-scheduling-dump-statistics-format=pretty", f"--iree-scheduling-dump-statistics-file={file}")
            module = iree_compile(text, *dump, *flags, seconds=seconds)
            statistics = parse_statistics(file.read_text())
        assert statistics is not None
        self.statistics = statistics
        self._functions = rt.load_vm_flatbuffer(module, driver="local-sync")

    @property
    def counts(self) -> tuple[int, int, int]:
        """Dispatches, copies and fills."""
        return self.statistics.dispatches, self.statistics.copies, self.statistics.fills

    def __call__(self, *arguments: Array, function: str = "main") -> list[Array]:
        """The function's results."""
        results = self._functions[function](*arguments)
        return [result.to_host() for result in (results if isinstance(results, tuple) else (results,))]


def run(text: str, *arguments: Array, flags: Sequence[str] = ()) -> Array:
    """The first result of `main` on the CPU."""
    return Program(text, *flags)(*arguments)[0]


def random(shapes: Sequence[Sequence[int]]) -> list[Array]:
    """Arrays of order 1, the same every time."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]


class Together:
    """Programs, each with its rewritten form beside it, compiled as one: by itself each would take half a second."""

    def __init__(self, texts: Sequence[str], *rewrites: Rewrite) -> None:
        self._rewritten = {text: rewritten(text, *rewrites) for text in texts}
        functions: dict[str, str] = {}
        for number, (before, (after, _)) in enumerate(self._rewritten.items()):
            functions |= {f"before_{number}": before, f"after_{number}": after}
        # Else constants are programs to compile too.
        flag, seconds = "--iree-opt-const-eval=false", COMPILE_S + 10 * len(functions)
        self._program = Program(in_one_module(functions), flag, seconds=seconds)

    def agree(self, text: str) -> list[int]:
        """Check that one of the programs gives the same in both forms; what each rewrite has matched."""
        number = list(self._rewritten).index(text)
        arguments = random(argument_shapes(text))
        before, after = (self._program(*arguments, function=f"{form}_{number}") for form in ("before", "after"))
        for expected, result in zip(before, after, strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5 * float(abs(expected).max()))
        return self._rewritten[text][1]


def agree(text: str, *rewrites: Rewrite) -> list[int]:
    """Check that a program gives the same in its rewritten form; what each rewrite has matched."""
    return Together([text], *rewrites).agree(text)


def at_flow(program: str, *rewrites: Rewrite) -> tuple[list[int], tuple[int, int, int], tuple[int, int, int]]:
    """Check that rewrites at phase `flow` change no bit of a program's results.

    Returns:
        What each has matched; dispatches, copies and fills before and after.
    """
    flow = lowered(program, "flow")
    after, matched = rewritten(flow, *rewrites)
    stock, changed = (Program(text) for text in (flow, after))
    arguments = random(argument_shapes(program))
    results = [[array.tobytes() for array in one(*arguments)] for one in (stock, changed)]
    assert results[0] == results[1]
    return matched, stock.counts, changed.counts


def argument_shapes(text: str) -> list[tuple[int, ...]]:
    """Of `main`."""
    kinds = re.findall(r"tensor<([^<>]*)xf32>", text.partition("@main(")[2].partition("->")[0])
    return [tuple(map(int, kind.split("x"))) for kind in kinds]


def in_one_module(programs: Mapping[str, str]) -> str:
    """One module with the function `main` of each program, and those beside it, under the program's name."""
    with ir.Context():
        first, *others = (ir.Module.parse(text.replace("@main", f"@{name}")) for name, text in programs.items())
        for module in others:
            for function in list(module.body.operations):
                first.body.append(function)
        return str(first)


def dense_block(**sizes: int) -> str:
    """The harness's model of ESRGAN's residual dense block."""
    text = residual_dense_block.build(residual_dense_block.Parameters(**sizes)).text
    assert isinstance(text, str)
    return text
