"""Silero VAD: whether somebody speaks in 576 samples of sound (https://github.com/snakers4/silero-vad).

A spectrum by convolution, four convolutions and an LSTM whose state goes in and out. A package has it in ONNX in
several forms; IREE 3.13.0 compiles neither of these two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.models.builder import Builder, BuiltOnnx
from harness.models.model import Input
from harness.models.onnx_package import read_static
from harness.weights import WeightFile

Form = Literal["branches", "straight"]


def _file(name: str, sha256: str) -> WeightFile:
    return WeightFile(
        distribution="silero-vad", version="6.2.3", path=f"silero_vad/data/{name}", sha256=sha256, extra="silero"
    )


FILES: dict[Form, WeightFile] = {
    "branches": _file("silero_vad_16k_op15.onnx", "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49"),
    "straight": _file(
        "silero_vad_openvino_16k.onnx", "7776b81ad1b0350c15d7f1555943b9232eb53e9ca5d989c6d0cea9ebc8664d87"
    ),
}
_SOUND = Input(shape=(1, 576))
_STATE = Input(shape=(2, 1, 128), seed=1)
_RATE = Input(shape=(), dtype="i64", fill="constant", value=16000.0)
_INPUTS: dict[Form, tuple[Input, ...]] = {"branches": (_SOUND, _STATE, _RATE), "straight": (_SOUND, _STATE)}


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Which of the package's forms.

    Attributes:
        form: `branches` decides by onnx.If which shapes it has; `straight` has neither that nor a sampling rate.
    """

    form: Form = "straight"


def build(params: Parameters) -> BuiltOnnx:
    """Write the network; it gives a probability, 1 x 1, and the next state, 2 x 1 x 128.

    Raises:
        CaseError: The model cannot be had (stage `model`).
    """
    return read_static(FILES[params.form], _INPUTS[params.form])


BUILDER = Builder(
    name="silero",
    version="1",
    description="Silero VAD, which hears whether somebody speaks, as a package has it.",
    parameters=Parameters,
    build=build,
)
