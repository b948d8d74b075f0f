"""A small program with the flags that it is compiled with, and its IR at every phase, written and counted once."""

import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from iree.compiler import ir

from harness.ir import program as counter
from harness.ir.counts import OpCounts, count_files
from harness.ir.dump import dump_phases
from harness.metrics import PHASES
from harness.process import Limits
from harness.records.run import Work
from harness.toolchain import Toolchain
from tests.programs import program

Dump = Callable[..., dict[str, Path]]
Count = Callable[[Mapping[str, Path]], dict[str, OpCounts]]


LIMITS = Limits(seconds=120, memory_bytes=8 << 30)
# Whatever processor the tests run on: its vectors decide which temporaries a dispatch needs.
HASWELL_FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu",
    "--iree-llvmcpu-target-cpu=haswell",
)
WEIGHT = struct.pack("<2304f", *(element / 256 for element in range(32 * 8 * 3 * 3))).hex().upper()
# relu(conv(x)), and x itself without its border.
MODEL = program(
    """
    main x:1x8x12x8
    weight:32x8x3x3 = | arith.constant dense_resource<weight> : tensor<32x8x3x3xf32>
    conv = conv x weight
    relu = each maximumf conv zero
    crop = extract x 0,0,1,1 1x8x10x6
    both = empty 1x40x10x6
    first = insert relu both 0,0,0,0
    second = insert crop first 0,32,0,0
    return second
    """,
    blob=f'weight: "0x04000000{WEIGHT}"',
)


def work(text: str, *shapes: Sequence[int], entry: str = "main") -> Work:
    """Of one call, with the shapes of the arguments whose types do not say them."""
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        return Work(model="", **counter.work([ir.Module.parse(text)], "", function=entry, shapes=shapes))


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
