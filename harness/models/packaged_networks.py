"""Networks that packages have in ONNX: PP-OCR, which finds text in a picture, and Silero VAD, which hears speech.

PP-OCR (https://github.com/PaddlePaddle/PaddleOCR): the detector gives how likely each pixel is part of text, and here
also that map before its sigmoid, since what is nearly zero everywhere cannot be checked; the classifier says whether
text is upside down. Silero VAD (https://github.com/snakers4/silero-vad): IREE 3.13.0 compiles neither of its two forms.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from harness.models.builder import Builder, BuiltOnnx
from harness.models.model import Input
from harness.models.onnx_file import read_static
from harness.models.weights import WeightFile

Part = Literal["detector", "classifier"]
Form = Literal["branches", "straight"]
_COLOURS = 3


def _ocr(name: str, sha256: str) -> WeightFile:
    return WeightFile(
        distribution="rapidocr-onnxruntime",
        version="1.4.4",
        path=f"rapidocr_onnxruntime/models/{name}",
        sha256=sha256,
        extra="paddle-ocr",
    )


def _silero(name: str, sha256: str) -> WeightFile:
    return WeightFile(
        distribution="silero-vad", version="6.2.3", path=f"silero_vad/data/{name}", sha256=sha256, extra="silero"
    )


_OCR_FILES: dict[Part, WeightFile] = {
    "detector": _ocr("ch_PP-OCRv4_det_infer.onnx", "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9"),
    "classifier": _ocr(
        "ch_ppocr_mobile_v2.0_cls_infer.onnx", "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c"
    ),
}
_OUTPUTS: dict[Part, tuple[str, ...]] = {"detector": ("sigmoid_0.tmp_0", "p2o.Add.281"), "classifier": ()}
# Rows and columns that the package itself gives them.
_SIZES: dict[Part, tuple[int, int]] = {"detector": (320, 320), "classifier": (48, 192)}
_SILERO_FILES: dict[Form, WeightFile] = {
    "branches": _silero("silero_vad_16k_op15.onnx", "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49"),
    "straight": _silero(
        "silero_vad_openvino_16k.onnx", "7776b81ad1b0350c15d7f1555943b9232eb53e9ca5d989c6d0cea9ebc8664d87"
    ),
}
_SOUND = Input(shape=(1, 576))
_STATE = Input(shape=(2, 1, 128), seed=1)
_RATE = Input(shape=(), dtype="i64", fill="constant", value=16000.0)
_INPUTS: dict[Form, tuple[Input, ...]] = {"branches": (_SOUND, _STATE, _RATE), "straight": (_SOUND, _STATE)}


@dataclass(frozen=True, kw_only=True)
class OcrParameters:
    """Which network, and sizes of its input."""

    part: Part = "detector"  # Of the reader of text
    # Rows of the picture, a multiple of 32 for the detector; 0: 320 for the detector, 48 for the classifier
    height: Annotated[int, Field(ge=0)] = 0
    width: Annotated[int, Field(ge=0)] = 0  # Its columns, likewise; 0: 320 and 192


def build_ocr(params: OcrParameters) -> BuiltOnnx:
    """Write the network; the detector gives two maps, 1 x 1 x height x width, the classifier 1 x 2."""
    height, width = _SIZES[params.part]
    picture = Input(shape=(1, _COLOURS, params.height or height, params.width or width))
    return read_static(_OCR_FILES[params.part], (picture,), outputs=_OUTPUTS[params.part])


@dataclass(frozen=True, kw_only=True)
class SileroParameters:
    """Which of the package's forms."""

    # `branches` decides by onnx.If which shapes it has; `straight` has neither that nor a sampling rate
    form: Form = "straight"


def build_silero(params: SileroParameters) -> BuiltOnnx:
    """Write the network; it gives a probability, 1 x 1, and the next state, 2 x 1 x 128."""
    return read_static(_SILERO_FILES[params.form], _INPUTS[params.form])


OCR_BUILDER = Builder(
    name="paddle-ocr",
    description="PP-OCR's detector of text and classifier of its direction, as a package has them.",
    parameters=OcrParameters,
    build=build_ocr,
)


SILERO_BUILDER = Builder(
    name="silero",
    description="Silero VAD, which hears whether somebody speaks, as a package has it.",
    parameters=SileroParameters,
    build=build_silero,
)
