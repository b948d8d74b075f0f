"""Model -> its work: arithmetic operations and bytes of one call, counted in the IR at phase `input`.

There the program is linalg on tensors, and no variant has touched it yet: what padding, packing or im2col add to it is
no useful work.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from harness.cache import read_memo, write_memo
from harness.errors import CaseError
from harness.ir.dump import dump_phases
from harness.ir.tools import failure, shortened, start
from harness.models.materialize import ModelArtifact
from harness.process import Limits
from harness.records.run import Work
from harness.toolchain import Toolchain

_COUNTER = Path(__file__).with_name("counter.py")
_PROGRAM = ("counter", "graph", "operations", "arithmetic", "footprint", "sizes")
_PHASE = "input"
_WORK = TypeAdapter(Work)


def count_work(
    artifact: ModelArtifact, flags: Sequence[str], *, toolchain: Toolchain, limits: Limits, memos: Path
) -> Work:
    """Count what one call of a model's entry function has to do.

    Args:
        flags: Compiler flags of a case of the model; those that say how the input is read are used.
        limits: What the compiler, and then the counter, may use.
        memos: A folder, made if need be, of what was counted before.

    Raises:
        CaseError: There is no IR of that phase, it cannot be read back, or a size in it does not follow from the
            shapes of the inputs (stage `ir`).
    """
    flags = [flag for flag in flags if flag.startswith("--iree-input-")]
    shapes = [one.shape for one in artifact.inputs]
    key = json.dumps([artifact.sha256, artifact.function, shapes, flags, toolchain.compiler_sha256, _program_sha256()])
    memo = memos / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
    try:
        known = _WORK.validate_python(read_memo(memo))
    except ValidationError:  # there is none, or it is damaged
        known = None
    if known is not None:
        return replace(known, model=artifact.name)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        files = dump_phases(flags, artifact.mlir, [_PHASE], toolchain=toolchain, folder=Path(folder), limits=limits)
        request: dict[str, object] = {"file": str(files[_PHASE]), "function": artifact.function, "shapes": shapes}
        work = _count(artifact.name, request, toolchain, limits)
    write_memo(memo, _WORK.dump_python(work))
    return work


def _count(model: str, request: Mapping[str, object], toolchain: Toolchain, limits: Limits) -> Work:
    counter = "the counter of arithmetic"
    command = [*toolchain.python_command, str(_COUNTER), json.dumps(request)]
    finished = start(counter, command, limits=limits)
    if not finished.ok:
        raise failure(counter, finished, limits, where=f" on {model}", remedy="report it as a defect of the harness")
    answer = json.loads(finished.stdout)
    if "unread" in answer:
        raise CaseError("ir", f"the IR at phase {_PHASE!r} cannot be read back ({shortened(answer['unread'])})")
    if "why" in answer:
        raise CaseError("ir", str(answer["why"]))
    counted = answer["work"]
    return Work(
        model=model,
        operations=counted["operations"],
        integer=counted["integer"],
        transcendental=counted["transcendental"],
        compulsory_bytes=counted["compulsory_bytes"],
        footprint_bytes=counted["moved_bytes"],
        uncounted=counted["unknown"],
    )


@cache
def _program_sha256() -> str:
    """Of the counting program itself: another one may count otherwise."""
    sources = (Path(__file__).with_name(f"{name}.py").read_bytes() for name in _PROGRAM)
    return hashlib.sha256(b"\0".join(sources)).hexdigest()
