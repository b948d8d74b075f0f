"""What is kept of an output that was refused, so that a person can look at it with IREE's plain tools."""

from __future__ import annotations

import hashlib
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from harness.verify.difference import Right
from harness.verify.outputs import Array
from harness.verify.runnable import AnyRunnable, Runnable

_FOLDER = "refused"
# Programs with larger weights are named by their place in the cache.
_LARGEST_BYTES = 64 * 2**20


def keep_refused(item: AnyRunnable, outputs: Sequence[Array], right: Right, problem: str, cache: Path) -> str:
    """Keep program, inputs, module, outputs and right outputs with the commands that show the difference."""
    name = hashlib.sha256(f"{item.case.id} {item.case.toolchain} {item.case.device}".encode()).hexdigest()[:16]
    folder = cache / _FOLDER / name
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        program = item.artifact.mlir
        if program.stat().st_size <= _LARGEST_BYTES:
            program = Path(shutil.copy(program, folder / "model.mlir"))
        if isinstance(item, Runnable):
            for file in item.bench.folder.iterdir():
                if file.is_symlink() and file.exists() and file.stat().st_size <= _LARGEST_BYTES:
                    shutil.copy(file, folder / file.name)
        for position, (ours, true) in enumerate(zip(outputs, right.outputs, strict=False)):
            np.save(folder / f"refused{position}.npy", ours)
            np.save(folder / f"right{position}.npy", true)
            if right.allowed is not None:
                np.save(folder / f"allowed{position}.npy", right.allowed[position])
        lines = [f"# {item.case.name}: refused*.npy is not right*.npy, which is from {right.source}", f"# {problem}"]
        if isinstance(item, Runnable):
            plugins = " # after the plugins of the variant" if item.case.plugins else ""
            compiled = ["iree-compile", program.name, "-o", "module.vmfb", *item.case.compile_flags]
            lines += [shlex.join(compiled) + plugins, shlex.join(item.command)]
        (folder / "reproduce.sh").write_text("\n".join(lines) + "\n")
    except OSError:
        return ""
    return f"{_FOLDER}/{name}"
