"""`harness export`: a model's program and inputs as files, for use with IREE's tools by hand.

The names in the folder are those of the command lines that reports print.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.cache import cache_root
from harness.compile.program import rewrite_model
from harness.compile.request import MODEL_FILE
from harness.errors import UsageError
from harness.models.materialize import ModelArtifact, input_files, materialize
from harness.models.model import Model
from harness.records.case import Case
from harness.records.run import PluginEffect
from harness.stages.build import request_for
from harness.stages.options import compile_limits
from harness.stages.prepare import Prepared, prepare, require_name
from harness.store.files import writing
from harness.suite.cases import Selection
from harness.suite.load import load_suite
from harness.toolchain import Toolchain, find_toolchain


@dataclass(frozen=True, kw_only=True)
class Exported:
    """What lies in the folder now."""

    files: tuple[str, ...]
    function: str
    effects: tuple[PluginEffect, ...] = ()  # What each rewrite did to the program
    flags: tuple[str, ...] = ()  # Flags that say where iree-compile begins


def export_program(
    suite: Path, model: str, out: Path, *, variant: str | None = None, device: str | None = None
) -> Exported:
    """Write the program that a variant's plugins make of a model, and the files that they give to the tools."""
    if variant is None:
        artifact = _artifact(_find(suite, model, load_suite(suite).suite.models), find_toolchain())
        return Exported(files=_copy(out, artifact, artifact.mlir, ()), function=artifact.function)
    prepared = prepare(suite, Selection())
    found = _find(suite, model, prepared.suite.models)
    case = _case(prepared, suite, model, variant, device)
    artifact = _artifact(found, prepared.toolchain)
    request = request_for(prepared, case, artifact, "", compile_limits())
    with tempfile.TemporaryDirectory(prefix="harness-export-") as scratch:
        folder = Path(scratch)
        (folder / MODEL_FILE).symlink_to(artifact.mlir.resolve())
        for file in request.arranged.files:
            file.put_into(folder)
        program = rewrite_model(request, folder)
        plugin_files = [folder / file.unique_name for file in request.arranged.files]
        files = _copy(out, artifact, folder / MODEL_FILE, plugin_files)
    return Exported(files=files, function=artifact.function, effects=program.effects, flags=program.flags)


def _find(suite: Path, name: str, models: Iterable[Model]) -> Model:
    by_name = {model.name: model for model in models}
    require_name(suite, "model", name, list(by_name))
    return by_name[name]


def _case(prepared: Prepared, suite: Path, model: str, variant: str, device: str | None) -> Case:
    require_name(suite, "variant", variant, [variant.name for variant in prepared.suite.variants])
    if device is not None:
        require_name(suite, "device", device, [device.name for device in prepared.suite.devices])
    for case in prepared.cases:
        if case.model == model and case.variant == variant and device in (None, case.device):
            return case
    raise UsageError(f"{suite}: [matrix] leaves out {model}/{variant}@{device or '*'}; choose a case of `harness list`")


def _artifact(model: Model, toolchain: Toolchain) -> ModelArtifact:
    return materialize(model, store=cache_root() / "models", toolchain=toolchain, limits=compile_limits())


def _copy(out: Path, artifact: ModelArtifact, program: Path, plugin_files: Sequence[Path]) -> tuple[str, ...]:
    files = {MODEL_FILE: program, **input_files(artifact), **{file.name: file for file in plugin_files}}
    with writing(out, "choose another folder with --out"):
        out.mkdir(parents=True, exist_ok=True)
        for name, file in files.items():
            shutil.copy(file, out / name)
    return tuple(files)
