"""The tutorial's schedule as a transform library: that each stage computes the same, and what it leaves in the code."""

import re
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pytest

from harness.models.channelled_convolution import Parameters, build
from harness.plugins.halide_schedule import HalideScheduleOptions, Step, transform_library
from tests.programs import program
from tests.rewrites.tools import iree_compile, random, run

STEPS: tuple[Step, ...] = get_args(Step)
LANES, VECTORS, COLUMNS = 4, 2, 5  # vectors that every machine has


def flags_of(folder: Path, **options: Any) -> list[str]:
    options = {"lanes": LANES, "vectors": VECTORS, "columns": COLUMNS, **options}
    file = transform_library(HalideScheduleOptions(**options))
    file.put_into(folder)
    return [f"--iree-codegen-transform-dialect-library={folder / file.unique_name}"]


def text_of(form: Any, **sizes: Any) -> str:
    text = build(Parameters(form=form, **sizes)).text
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize(
    ("step", "form", "sizes"),
    [
        *((step, "generic", (2, 3, 10, 3, 16)) for step in STEPS),
        ("unroll-late", "named", (2, 3, 10, 3, 16)),
        ("vectors", "generic", (1, 2, 7, 2, 12)),  # which the tiles do not divide
    ],
)
def test_each_stage_computes_the_same(
    step: Step, form: Literal["named", "generic"], sizes: tuple[int, ...], tmp_path: Path
) -> None:
    names = ("batch", "height", "width", "channels_in", "channels_out")
    images, height, width, channels, _ = sizes
    (image,) = random([(images, height + 2, width + 2, channels)])
    named, scheduled = (text_of(one, **dict(zip(names, sizes, strict=True))) for one in ("named", form))
    result = run(scheduled, image, flags=flags_of(tmp_path, step=step))
    np.testing.assert_allclose(result, run(named, image), atol=1e-5)


def test_other_programs_are_left_alone(tmp_path: Path) -> None:
    text = program("main x:8x16 y:16x8\ne = empty 8x8\nz = fill zero e\np = matmul x y z\nreturn p")
    assert iree_compile(text, *flags_of(tmp_path)) == iree_compile(text)


@pytest.mark.parametrize("step", STEPS)
def test_tiles_are_the_machines_unless_said_otherwise(step: Step) -> None:
    text = transform_library(HalideScheduleOptions(step=step, vectors=4, lanes=16)).data.decode()
    assert "tile_sizes [1, 1, 0, 64]" in text
    assert "tile_sizes [0, 0, 5, 0]" in text
    assert "$" not in text
    default = transform_library(HalideScheduleOptions(step=step)).data.decode()
    assert re.search(r"tile_sizes \[1, 1, 0, (8|16|32|64)\]", default)
