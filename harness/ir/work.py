"""Model -> its work: arithmetic operations and bytes of one call, counted in the IR at phase `input`.

There the program is linalg on tensors, and no variant has touched it yet: what padding, packing or im2col add to it is
no useful work.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from harness.cache import read_memo, write_memo
from harness.errors import CaseError
from harness.ir.dump import dump_phases
from harness.ir.tools import ask
from harness.process import Limits
from harness.records.run import Work
from harness.toolchain import Toolchain

_SOURCES = ("child", "program", "operations", "sizes")
_PHASE = "input"
_WORK = TypeAdapter(Work)


def count_work(
    model: str,
    program: Path,
    function: str,
    shapes: Sequence[Sequence[int]],
    *,
    sha256: str,
    flags: Sequence[str],
    toolchain: Toolchain,
    limits: Limits,
    memos: Path,
) -> Work:
    """Count what one call of a model's entry function has to do."""
    flags = [flag for flag in flags if flag.startswith("--iree-input-")]
    shapes = [list(shape) for shape in shapes]
    key = json.dumps([sha256, function, shapes, flags, toolchain.compiler_sha256, _sources_sha256()])
    memo = memos / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
    try:
        return replace(_WORK.validate_python(read_memo(memo)), model=model)
    except ValidationError:  # there is none, or it is damaged
        pass
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        files = dump_phases(flags, program, [_PHASE], toolchain=toolchain, folder=Path(folder), limits=limits)
        answers = ask(
            "work",
            files,
            name="the counter of arithmetic",
            toolchain=toolchain,
            limits=limits,
            where=f" on {model}",
            remedy="report it as a defect of the harness",
            function=function,
            shapes=shapes,
        )
    if "unknown" in answers:
        raise CaseError("ir", str(answers["unknown"]))
    counted = answers[_PHASE]
    work = Work(
        model=model,
        operations=counted["operations"],
        integer=counted["integer"],
        transcendental=counted["transcendental"],
        compulsory_bytes=counted["compulsory_bytes"],
        footprint_bytes=counted["moved_bytes"],
        uncounted=counted["unknown"],
    )
    write_memo(memo, _WORK.dump_python(work))
    return work


@cache
def _sources_sha256() -> str:
    """Of the counting program itself: another one may count otherwise."""
    sources = (Path(__file__).with_name(f"{name}.py").read_bytes() for name in _SOURCES)
    return hashlib.sha256(b"\0".join(sources)).hexdigest()
