"""A picture through Real-ESRGAN as IREE compiles it, beside bicubic interpolation and the picture it was made from.

    make picture      (or: python benchmarks/upscale.py [--case x4plus/stock@cpu] [--out docs/pictures/upscaled.png])

It needs Pillow (pip install 'iree-harness[picture]'). The picture is a portrait of Grace Hopper by the United States
Navy, in the public domain, which lies in the package matplotlib as sample data. A square of it is made small, 64x64,
and large again in two ways. The module is that of suites/esrgan.toml, compiled and checked by the harness.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # run by path, as `make picture` does

from benchmarks.plugins.compiled import compile_suite  # noqa: E402
from harness.errors import HarnessError  # noqa: E402
from harness.models.weights import WeightFile  # noqa: E402
from harness.suite.cases import Selection  # noqa: E402

SUITE = ROOT / "suites" / "esrgan.toml"
PORTRAIT = WeightFile(
    distribution="matplotlib",
    version="3.10.7",
    path="matplotlib/mpl-data/sample_data/grace_hopper.jpg",
    sha256="a8ca6d734765703b09728ab47fe59f473d93ae3967fc24c7c0288c3c7adb7130",
    extra="picture",
    wheel=("--python-version=3.11", "--implementation=cp", "--abi=cp311", "--platform=manylinux2014_x86_64"),
)
SMALL, FACTOR = 64, 4
SQUARE = (124, 68, 380, 324)  # around the face: left, top, right, bottom
_GAP = 8


def portrait() -> Image.Image:
    """The square of the picture, as large as what comes out."""
    from PIL import Image

    return Image.open(PORTRAIT.locate()).convert("RGB").crop(SQUARE)


def compiled_module(case: str) -> tuple[str, str]:
    """The file of a case's module, whose outputs the harness found right, and its entry function.

    Raises:
        HarnessError: There is no such case, or it does not compile.
    """
    with tempfile.TemporaryDirectory() as results:
        compiled = compile_suite(SUITE, Path(results), Selection(patterns=(case,)))
    # The case's baseline comes along, to be compared with.
    found = [one for one in compiled.modules if case.startswith(f"{one.model}/{one.variant}@")]
    if len(found) != 1:
        raise HarnessError(f"--case {case}: gives {len(found)} modules; name one case that compiles here")
    return found[0].path, found[0].function


def upscale(small: Image.Image, path: str, function: str) -> Image.Image:
    """Send a picture through the module, on one thread."""
    import iree.runtime as rt
    from PIL import Image

    config = rt.Config("local-sync")
    context = rt.SystemContext(config=config)
    context.add_vm_module(rt.VmModule.mmap(config.vm_instance, path))
    pixels: NDArray[np.float32] = np.asarray(small, np.float32).transpose(2, 0, 1)[np.newaxis] / np.float32(255)
    result: Any = context.modules.module[function](np.ascontiguousarray(pixels))
    large = np.clip(result.to_host()[0].transpose(1, 2, 0), 0, 1)
    return Image.fromarray(np.round(large * 255).astype(np.uint8))


def side_by_side(pictures: list[Image.Image]) -> Image.Image:
    """Pictures of one size in a row, a white gap between them."""
    from PIL import Image

    width, height = pictures[0].size
    row = Image.new("RGB", (len(pictures) * (width + _GAP) - _GAP, height), "white")
    for position, picture in enumerate(pictures):
        row.paste(picture, (position * (width + _GAP), 0))
    return row


def main(arguments: list[str]) -> int:
    """Write the picture; the exit status."""
    parser = argparse.ArgumentParser(description="A picture through Real-ESRGAN as IREE compiles it.")
    parser.add_argument("--case", default="x4plus/nhwc-share-tuned@cpu", help="a case of suites/esrgan.toml")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures" / "upscaled.png")
    chosen = parser.parse_args(arguments)
    try:
        from PIL import Image
    except ImportError:
        sys.stderr.write("Pillow is not installed; run pip install 'iree-harness[picture]'\n")
        return 2
    try:
        path, function = compiled_module(chosen.case)
        original = portrait()
    except HarnessError as error:
        sys.stderr.write(f"{error}\n")
        return int(error.exit_code)
    small = original.resize((SMALL, SMALL), Image.Resampling.BOX)
    bicubic = small.resize(original.size, Image.Resampling.BICUBIC)
    row = side_by_side([bicubic, upscale(small, path, function), original])
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    row.quantize(256, dither=Image.Dither.FLOYDSTEINBERG).save(chosen.out, optimize=True)
    print(f"{chosen.out}: bicubic, {chosen.case}, and the original")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
