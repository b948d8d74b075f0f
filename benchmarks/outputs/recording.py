"""Compiles and calls groups of functions, and keeps what they gave by content, so that what was stopped goes on."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from iree.compiler.version import VERSION

from benchmarks.outputs.building import Array, Function
from benchmarks.outputs.judging import CompileError, Runner, compiled, configured, content

Outputs = dict[str, list[Array]]
_PHASE = "executable-configurations"


@cache
def _runner() -> Runner:
    return Runner()


@dataclass(frozen=True, kw_only=True)
class Keeper:
    """What IREE's modules gave, in a folder."""

    folder: Path

    def outputs(self, functions: Sequence[Function], target: str, flags: Sequence[str]) -> tuple[Outputs, list[str]]:
        """The outputs of functions, compiled as one module; and what went wrong, a sentence each.

        Where they do not compile together, each half is tried by itself.
        """
        text = "\n".join(function.text() for function in functions)
        try:
            return self._of(text, functions, target, flags), []
        except CompileError as error:
            if len(functions) == 1:
                return {}, [f"`{functions[0].name}` with {' '.join(flags) or 'no flags'} for {target}: {error}"]
        middle = len(functions) // 2
        first, failed = self.outputs(functions[:middle], target, flags)
        second, failed_too = self.outputs(functions[middle:], target, flags)
        return {**first, **second}, [*failed, *failed_too]

    def _of(self, text: str, functions: Sequence[Function], target: str, flags: Sequence[str]) -> Outputs:
        # What a flag set makes of the program; many make the same, and that is compiled and called once.
        known = self.folder / f"{content(text, target, *flags, VERSION)}.code"
        configuration = ""
        if not known.exists():
            configuration = configured(text, target, flags)
            _write(known, content(configuration, target).encode())
        values = b"".join(held.tobytes() for function in functions for _, held in function.arguments)
        file = self.folder / f"{content(known.read_text(), values.hex())}.npz"
        if not file.exists():
            module = compiled(configuration or configured(text, target, flags), target, flags, phase=_PHASE)
            try:
                given = _runner().call(module, functions)
                arrays = {f"{f.name}:{at}": out for f, outs in zip(functions, given, strict=True)
                          for at, out in enumerate(outs)}  # fmt: skip
            finally:
                module.unlink()
            temporary = file.with_suffix(f".{os.getpid()}.part.npz")
            np.savez_compressed(temporary, **arrays)  # type: ignore[arg-type]
            temporary.replace(file)
        with np.load(file) as kept:
            return {f.name: [kept[f"{f.name}:{at}"] for at in range(len(f.results))] for f in functions}


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_suffix(f".{os.getpid()}.part")
    temporary.write_bytes(data)
    temporary.replace(path)
