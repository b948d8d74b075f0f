"""Which plugin an error of iree-compile is about, so that a failure names what its reader can change."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.compile.request import CompileRequest
from harness.plugins.chain import pipelines_of
from harness.plugins.plugin import CompilerPlugin, Step, TransformLibrary, TransformSpec, TuningSpec

_UNKNOWN_PASS = re.compile(r"'(?P<name>[^']+)' does not refer to a registered pass")
_WRONG_PIPELINE = re.compile(r"pass pipeline|PassPipeline")


def blamed_plugin(request: CompileRequest, stderr: str) -> str | None:
    """The plugin that an error is about: it brings a file, an entry or a pass that the compiler names.

    None where that cannot be told: of two pass pipelines, say, when the error names no pass.

    Args:
        stderr: All that iree-compile printed.
    """
    # A warning about a plugin's file is not what the compile failed with.
    lines = [line for line in stderr.splitlines() if " warning: " not in line]
    for applied in request.plugins:
        if any(mark in line for step in applied.steps for mark in _marks(step) for line in lines):
            return applied.name
    return _owner_of_pipeline(request, "\n".join(lines))


def _marks(step: Step) -> Iterator[str]:
    """What errors about a step have in them."""
    file = getattr(step, "file", None)
    if file is not None:
        yield file.unique_name
    match step:
        case TransformSpec():
            yield "named sequence with name: __transform_main"
        case TuningSpec():
            yield "named sequence with name: __kernel_config"
        case TransformLibrary():
            yield f"named sequence with name: {step.entry or '__kernel_config'}"
        case CompilerPlugin():
            yield from (f"IREE plugin '{one}'" for one in step.activate)


def _owner_of_pipeline(request: CompileRequest, errors: str) -> str | None:
    """The plugin whose pass pipeline is wrong; the variant's own flag may be the one, and has no owner here."""
    texts = [(one.name, text) for one in request.plugins for step in one.steps for text in pipelines_of(step)]
    texts += [("", text) for owner, text in request.arranged.pipelines if not owner]
    unknown = _UNKNOWN_PASS.search(errors)
    if unknown is not None:
        texts = [(owner, text) for owner, text in texts if unknown["name"] in text]
    elif not _WRONG_PIPELINE.search(errors):
        return None
    owners = {owner for owner, _ in texts}
    return (owners.pop() or None) if len(owners) == 1 else None
