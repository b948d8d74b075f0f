"""What `harness export` does."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.commands.output import memory_limit
from harness.errors import ExitCode, UsageError
from harness.process import Limits


def export_command(suite: Path, model: str, variant: str | None, device: str | None, out: Path | None) -> int:
    """`harness export`: program, inputs, external weights and plugins' files, as reports' command lines name them."""
    from harness.exporting import export_model, export_variant

    limits = Limits(seconds=900, memory_bytes=memory_limit())
    if variant is None and device is not None:
        raise UsageError("--device is for --variant, whose plugins may differ by device; give both or neither")
    if variant is None:
        folder = out or Path(model)
        exported = export_model(suite, model, folder, limits=limits)
    else:
        folder = out or Path(".".join(part for part in (model, variant, device) if part))
        exported = export_variant(suite, model, variant, device, folder, limits=limits)
    for effect in exported.effects:
        sys.stderr.write(f"{effect.name} matched {effect.matched}\n")
    begin = f"; compile it with {' '.join(exported.flags)}" if exported.flags else ""
    sys.stderr.write(f"{folder}: {', '.join(exported.files)}; entry function {exported.function}{begin}\n")
    return ExitCode.OK
