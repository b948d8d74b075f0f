"""Case -> its IR at named phases of the compiler: how many of which ops it has, and its text."""

from harness.ir.count import count_files, count_ops
from harness.ir.dump import dump_phases, entry_phase
from harness.ir.storage import EncodedTensor, Storage, read_storage
from harness.ir.text import print_ir
from harness.ir.values import BUFFERIZED, ENCODINGS, PHASES, PLACES, OpCounts, check_wanted, select_counts

__all__ = [
    "BUFFERIZED",
    "ENCODINGS",
    "PHASES",
    "PLACES",
    "EncodedTensor",
    "OpCounts",
    "Storage",
    "check_wanted",
    "count_files",
    "count_ops",
    "dump_phases",
    "entry_phase",
    "print_ir",
    "read_storage",
    "select_counts",
]
