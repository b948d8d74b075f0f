"""The small program's IR at every phase, written and counted once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.ir import OpCounts, count_files, dump_phases
from harness.metrics import PHASES
from harness.toolchain import Toolchain
from tests.ir.programs import HASWELL_FLAGS, LIMITS, MODEL


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("program") / "net.mlir"
    file.write_text(MODEL)
    return file


@pytest.fixture(scope="session")
def dumps(model: Path, real_toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """The program's IR at every phase."""
    folder = tmp_path_factory.mktemp("dumps")
    return dump_phases(HASWELL_FLAGS, model, PHASES, toolchain=real_toolchain, folder=folder, limits=LIMITS)


@pytest.fixture(scope="session")
def counts(dumps: Mapping[str, Path], real_toolchain: Toolchain) -> Mapping[str, OpCounts]:
    """The program's ops at every phase."""
    return count_files(dumps, toolchain=real_toolchain, limits=LIMITS)
