"""libxsmm's batch-reduce GEMM kernels beside IREE: the fused layers that tpp-mlir wants to call, in a loop of our own.

The layers and their layouts are in libxsmm_mlp.c. Weights are brought into their blocks once, when the model is made
ready, as IREE does at compile time; the input is brought into blocks in every call, which counts, and the result is
written row by row. libxsmm 1.17, which Debian has, offers no kernel that fuses bias and ReLU, so they follow each
block. In bf16 sums, bias and ReLU are in float, and a layer rounds once; the model's text rounds each of the three.
"""

import ctypes
import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from harness import process
from harness.cache import held
from harness.models.inputs import bf16_bits, from_bf16_bits
from harness.models.mlp import Parameters, weights
from harness.peers.peer import Array, Peer, PeerModel, Ready, Setting
from harness.plugins.options import NoOptions

_SOURCE = Path(__file__).with_name("libxsmm_mlp.c")
_LIBRARIES = ("xsmm", "xsmmnoblas", "dl", "pthread", "m")

# The blocks of the tpp-mlir issue. From 16 to 64 columns and from 8 to 128 rows are all within 3 % on Zen 4.
_BLOCK = 32
# Blocks of fewer columns would not show what libxsmm can do.
_SMALLEST_BLOCK = 8
_ALIGNMENT = 64
_COMPILE_LIMITS = process.Limits(seconds=120)


def _header() -> Path | None:
    folders = [*filter(None, os.environ.get("CPATH", "").split(os.pathsep)), "/usr/local/include", "/usr/include"]
    return next((path for folder in folders if (path := Path(folder) / "libxsmm.h").is_file()), None)


def _missing() -> str | None:
    if not shutil.which(compiler()):
        return f"there is no C compiler {compiler()}"
    return None if _header() else "there is no libxsmm.h"


def _version() -> str:
    header = _header()
    text = header.with_name("libxsmm_version.h").read_text() if header else ""
    found = re.search(r'LIBXSMM_CONFIG_VERSION "([^"]+)"', text)
    return found[1] if found else "unknown"


def _block_of(width: int, dtype: str) -> int:
    """The largest divisor up to _BLOCK; in bf16 an even one, since values lie in pairs. 0: none."""
    step = 2 if dtype == "bf16" else 1
    return max((size for size in range(step, _BLOCK + 1, step) if width % size == 0), default=0)


def _refuses(model: PeerModel, _: NoOptions) -> str | None:
    if model.builder != "mlp":
        return "it is given programs for the builder mlp only"
    width, dtype = model.params["width"], model.params["dtype"]
    if _block_of(width, dtype) < min(width, _SMALLEST_BLOCK):
        even = "even " if dtype == "bf16" else ""
        return f"a width of {width} has no {even}divisor from {_SMALLEST_BLOCK} to {_BLOCK}, so it has no good blocks"
    return None


def pack_weight(weight: Array, block: int, dtype: str) -> Array:
    """A weight [out, in] of float32 as the kernels read it."""
    blocks = len(weight) // block
    packed: Array = weight.reshape(blocks, block, blocks, block).transpose(0, 2, 3, 1)
    if dtype == "bf16":
        packed = bf16_bits(packed).reshape(blocks, blocks, block // 2, 2, block).swapaxes(-1, -2)
    return packed


def _aligned(values: Array) -> Array:
    """A copy that begins with a cache line, as IREE's buffers do."""
    room = np.empty(values.nbytes + _ALIGNMENT, np.uint8)
    begin = -room.ctypes.data % _ALIGNMENT
    copy: Array = room[begin : begin + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


def _bound(library: Path) -> ctypes.CDLL:
    bound = ctypes.CDLL(str(library))
    bound.mlp_processor.restype = ctypes.c_char_p
    bound.mlp_new.restype = ctypes.c_void_p
    bound.mlp_new.argtypes = [ctypes.c_int, *[ctypes.c_long] * 5, ctypes.c_void_p, ctypes.c_void_p]
    bound.mlp_run.restype = None
    bound.mlp_run.argtypes = [*[ctypes.c_void_p] * 4, ctypes.c_long, ctypes.c_long]
    return bound


def _prepare(model: PeerModel, arguments: Sequence[Array], setting: Setting, _: NoOptions) -> Ready:
    library = _bound(build_library(_SOURCE, _LIBRARIES, setting.cache))
    params = Parameters(**model.params)
    is_bf16 = params.dtype == "bf16"
    block = _block_of(params.width, params.dtype)
    row_block = max(size for size in range(1, _BLOCK + 1) if params.batch % size == 0)
    layers = list(weights(params))
    biases = np.stack([bias for _, bias in layers])
    bias = _aligned(from_bf16_bits(bf16_bits(biases)) if is_bf16 else biases)
    weight = _aligned(np.stack([pack_weight(weight, block, params.dtype) for weight, _ in layers]))
    x = np.asarray(arguments[0], np.float32)
    x = _aligned(bf16_bits(x) if is_bf16 else x)
    y, work = _aligned(np.zeros_like(x)), _aligned(np.zeros((2, *x.shape), x.dtype))
    sizes = (params.layers, params.batch, params.width, row_block, block)
    mlp = library.mlp_new(int(is_bf16), *sizes, weight.ctypes.data, bias.ctypes.data)
    if mlp is None:
        processor = library.mlp_processor().decode()
        raise RuntimeError(f"libxsmm has no {params.dtype} kernels for this processor, which it calls {processor}")
    kept = {"arrays": (x, y, work, weight, bias)}  # the library has only their addresses
    run = partial(library.mlp_run, mlp, x.ctypes.data, y.ctypes.data, work.ctypes.data)

    def outputs() -> list[Array]:
        result = kept["arrays"][1]
        return [from_bf16_bits(result) if is_bf16 else result.copy()]

    # The row blocks [first, end) of each thread; no more threads than blocks.
    row_blocks = params.batch // row_block
    threads = min(setting.threads, row_blocks)
    shares = list(pairwise(row_blocks * number // threads for number in range(threads + 1)))
    if threads == 1:
        return Ready(call=partial(run, 0, row_blocks), outputs=outputs)
    pool = ThreadPoolExecutor(threads)
    return Ready(call=lambda: list(pool.map(lambda share: run(*share), shares)), outputs=outputs)


def compiler() -> str:
    """The C compiler: $CC, else cc."""
    return os.environ.get("CC") or "cc"


def build_library(source: Path, libraries: Sequence[str], cache: Path) -> Path:
    """Compile a source for this processor, unless that was done already."""
    flags = ["-O3", "-march=native", "-std=gnu11", "-shared", "-fPIC"]
    links = [f"-l{library}" for library in libraries]
    macros = _run([compiler(), *flags, "-E", "-dM", str(source)])
    key = hashlib.sha256("\0".join([*flags, *links, macros, source.read_text()]).encode()).hexdigest()[:16]
    library = cache / f"{source.stem}-{key}.so"
    with held(cache / f"{library.name}.lock", lambda: None):
        if not library.exists():
            unfinished = library.with_suffix(".unfinished")
            _run([compiler(), *flags, str(source), "-o", str(unfinished), *links])
            unfinished.replace(library)
    return library


def _run(command: Sequence[str]) -> str:
    finished = process.run(command, limits=_COMPILE_LIMITS)
    if not finished.ok:
        lines = [line for line in finished.stderr.splitlines() if "error" in line] or finished.stderr.splitlines()
        reason = f": {lines[0]}" if lines else ""
        raise RuntimeError(f"{command[0]} {finished.how_it_ended(_COMPILE_LIMITS)}{reason}")
    return finished.stdout


PEER = Peer(
    name="libxsmm",
    title="libxsmm",
    description="batch-reduce GEMM kernels with bias and ReLU on each block, for the builder mlp",
    install="apt-get install libxsmm-dev gcc",
    options=NoOptions,
    missing=_missing,
    version=_version,
    refuses=_refuses,
    prepare=_prepare,
)
