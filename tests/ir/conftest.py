"""The small program's IR at every phase, written and counted once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from harness.ir.dump import dump_phases
from harness.ir.op_counts import OpCounts, count_files
from harness.metrics import PHASES
from harness.toolchain import Toolchain
from tests.ir.programs import HASWELL_FLAGS, LIMITS, MODEL

Dump = Callable[..., dict[str, Path]]
Count = Callable[[Mapping[str, Path]], dict[str, OpCounts]]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("program") / "net.mlir"
    file.write_text(MODEL)
    return file


@pytest.fixture(scope="session")
def dump(real_toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Dump:
    """Writes the IR of a program, a file or its text, into a folder of its own."""

    def dump(
        program: Path | str, phases: Sequence[str], flags: Sequence[str] = HASWELL_FLAGS, files: Sequence[Path] = ()
    ) -> dict[str, Path]:
        folder = tmp_path_factory.mktemp("dumps")
        if isinstance(program, str):
            (folder / "net.mlir").write_text(program)
            program = folder / "net.mlir"
        return dump_phases(flags, program, phases, toolchain=real_toolchain, folder=folder, limits=LIMITS, files=files)

    return dump


@pytest.fixture(scope="session")
def count(real_toolchain: Toolchain) -> Count:
    """Counts the ops in files of IR."""
    return lambda files: count_files(files, toolchain=real_toolchain, limits=LIMITS)


@pytest.fixture(scope="session")
def dumps(model: Path, dump: Dump) -> Mapping[str, Path]:
    """The program's IR at every phase."""
    return dump(model, PHASES)


@pytest.fixture(scope="session")
def counts(dumps: Mapping[str, Path], count: Count) -> Mapping[str, OpCounts]:
    """The program's ops at every phase."""
    return count(dumps)
