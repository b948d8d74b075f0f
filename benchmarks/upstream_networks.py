"""Upstream's toy networks, whose files lie in its checkout: CLIP in f32 and bf16, and LLaMA 3.1's prefill and decode.

outputs_upstream has them in its tables. LLaMA writes its cache in place (`hal.tensor.alias`); no tool of IREE shows an
argument after a call, so the outputs that count are its logits.
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from harness.process import Limits, run
from harness.toolchain import Toolchain
from harness.verify.outputs import ModuleCall, run_once
from harness.verify.rounding import Array

VARIANTS = {"stock": (), "data tiling": ("--iree-opt-data-tiling",), "O3": ("--iree-opt-level=O3",)}
_TARGET = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu")
_LIMITS = Limits(seconds=1200.0)
_PROMPT = (0, 208, 214, 29, 19, 86, 176, 120, 120, 80, 120, 208, 37, 157, 191, 137)


@dataclass(frozen=True, kw_only=True)
class Network:
    """One function of a program with weights.

    Attributes:
        outputs: How many it has.
        expected: What its first output is by upstream's file, if there is one.
    """

    name: str
    program: Path
    function: str
    parameters: Path
    inputs: tuple[Array, ...]
    outputs: int
    expected: Array | None = None


def networks_of(checkout: Path) -> list[Network]:
    """Those of a checkout."""
    models = checkout / "sharktank_models"
    clip, llama = models / "clip/assets/text_model/toy", models / "llama3.1/assets"
    tokens = _only(clip / "forward_bs4_arg0_input_ids.irpa")
    expected = _only(clip / "forward_bs4_expected_result0_last_hidden_state_f32.irpa")
    made = [
        Network(
            name=f"toy CLIP, {kind}",
            program=clip / f"{kind}.mlir",
            function="forward_bs4",
            parameters=clip / f"{kind}_parameters.irpa",
            inputs=(tokens,),
            outputs=2,
            expected=expected,
        )
        for kind in ("f32", "bf16")
    ]
    cache = np.zeros((128, 768 * 32), np.float16)
    prompt, length, pages = np.array([[*_PROMPT, *[0] * 16]]), np.array([len(_PROMPT)]), np.array([[0]])
    last, start = np.array([_PROMPT[-1:]]), np.array([len(_PROMPT) - 1])
    llama_network = partial(Network, program=llama / "toy_llama.mlir", parameters=llama / "toy_llama.irpa", outputs=1)
    return [
        *made,
        llama_network(name="toy LLaMA 3.1, prefill", function="prefill_bs1", inputs=(prompt, length, pages, cache)),
        llama_network(name="toy LLaMA 3.1, decode", function="decode_bs1", inputs=(last, length, start, pages, cache)),
    ]


def _only(file: Path) -> Array:
    """The one tensor of an archive."""
    from iree import runtime

    index = runtime.ParameterIndex()
    index.load(str(file))
    ((_, entry),) = index.items()
    return np.array(runtime.parameter_index_entry_as_numpy_ndarray(entry))


def outputs_of(network: Network, flags: tuple[str, ...], toolchain: Toolchain) -> list[Array]:
    """What a variant gives on the CPU of this machine."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [str(toolchain.iree_compile), str(network.program), "-o=module.vmfb", *_TARGET]
        run([*command, "--iree-llvmcpu-target-cpu=host", *flags], cwd=folder, limits=_LIMITS)
        for position, values in enumerate(network.inputs):
            np.save(folder / f"input{position}.npy", values)
        call = ModuleCall(
            toolchain=toolchain,
            folder=folder,
            function=network.function,
            inputs=tuple(f"@input{position}.npy" for position in range(len(network.inputs))),
            parameters=(f"model={network.parameters}",),
            uris=("local-sync",),
        )
        return [np.asarray(output) for output in run_once(call, network.outputs, _LIMITS)]


def linalg_of(network: Network, toolchain: Toolchain) -> str:
    """The program as linalg."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [str(toolchain.iree_compile), str(network.program), "--compile-to=input", "-o=a.mlir", *_TARGET]
        run(command, cwd=folder, limits=_LIMITS)
        return (folder / "a.mlir").read_text()


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What work gives, and the CPU seconds that it takes."""
    began = time.process_time()
    return work(), time.process_time() - began
