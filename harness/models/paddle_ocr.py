"""PP-OCR: the networks that find text in a picture and tell whether it is upside down.

Both are MobileNets of https://github.com/PaddlePaddle/PaddleOCR that a package has in ONNX. The detector (version 4)
gives a map of how likely each pixel is part of text, and here also that map before its sigmoid: in noise nothing is,
and what is nearly zero everywhere cannot be checked. The classifier (version 2) gives two probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from harness.models.builder import Builder, BuiltOnnx
from harness.models.model import Input
from harness.models.onnx_package import read_static
from harness.weights import WeightFile

Part = Literal["detector", "classifier"]

_COLOURS = 3


def _file(name: str, sha256: str) -> WeightFile:
    return WeightFile(
        distribution="rapidocr-onnxruntime",
        version="1.4.4",
        path=f"rapidocr_onnxruntime/models/{name}",
        sha256=sha256,
        extra="paddle-ocr",
    )


FILES: dict[Part, WeightFile] = {
    "detector": _file("ch_PP-OCRv4_det_infer.onnx", "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9"),
    "classifier": _file(
        "ch_ppocr_mobile_v2.0_cls_infer.onnx", "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c"
    ),
}
_OUTPUTS: dict[Part, tuple[str, ...]] = {"detector": ("sigmoid_0.tmp_0", "p2o.Add.281"), "classifier": ()}
# Rows and columns that the package itself gives them.
_SIZES: dict[Part, tuple[int, int]] = {"detector": (320, 320), "classifier": (48, 192)}


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Which network, and sizes of its input.

    Attributes:
        part: Of the reader of text.
        height: Rows of the picture, a multiple of 32 for the detector; 0: 320 for the detector, 48 for the classifier.
        width: Its columns, likewise; 0: 320 and 192.
    """

    part: Part = "detector"
    height: Annotated[int, Field(ge=0)] = 0
    width: Annotated[int, Field(ge=0)] = 0


def build(params: Parameters) -> BuiltOnnx:
    """Write the network; the detector gives two maps, 1 x 1 x height x width, the classifier 1 x 2.

    Raises:
        CaseError: The model cannot be had, or does not take such pictures (stage `model`).
    """
    height, width = _SIZES[params.part]
    picture = Input(shape=(1, _COLOURS, params.height or height, params.width or width))
    return read_static(FILES[params.part], (picture,), outputs=_OUTPUTS[params.part])


BUILDER = Builder(
    name="paddle-ocr",
    version="1",
    description="PP-OCR's detector of text and classifier of its direction, as a package has them.",
    parameters=Parameters,
    build=build,
)
