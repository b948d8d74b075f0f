"""Build -> what its encoded tensors cost in memory."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from harness.cache import cache_root, read_memo, write_memo
from harness.compile import BuildCache
from harness.errors import CaseError
from harness.ir.dump import dump_phases
from harness.ir.storage import read_storage
from harness.metrics import ENCODINGS
from harness.process import Limits
from harness.records.run import Build, Failure, Storage
from harness.toolchain import Toolchain

_STORAGE = TypeAdapter(Storage)


def storage_of(
    build: Build,
    model: Path,
    inputs: Sequence[Sequence[int]],
    flags: Sequence[str],
    *,
    toolchain: Toolchain,
    limits: Limits,
) -> Storage | Failure:
    """The encoded tensors of a build, kept in the cache.

    Args:
        model: The model's own program, for builds that plugins did not rewrite.
        inputs: Shapes of the case's arguments.
        flags: With which it was compiled, outputs aside.
    """
    shapes = hashlib.sha256(json.dumps([list(shape) for shape in inputs]).encode()).hexdigest()[:16]
    memo = cache_root() / "ir" / f"{build.cache_key}-storage-{shapes}.json"
    try:
        return _STORAGE.validate_python(read_memo(memo))
    except ValidationError:  # there is none, or it is damaged
        pass
    cache = BuildCache(cache_root())
    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            files = dump_phases(
                flags,
                cache.program(build) or model,
                [ENCODINGS],
                toolchain=toolchain,
                folder=Path(folder),
                limits=limits,
                files=cache.files(build),
            )
            found = read_storage(files[ENCODINGS], inputs, toolchain=toolchain, limits=limits)
    except CaseError as error:
        return Failure(stage="ir", message=str(error), stderr=error.stderr)
    write_memo(memo, _STORAGE.dump_python(found, mode="json"))
    return found
