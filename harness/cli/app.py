"""The application that commands register with, and the options that several of them have."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number

from harness import __version__

Format = Literal["terminal", "markdown", "json", "csv"]
Patterns = Annotated[
    list[str] | None,
    Parameter(name="--filter", negative="", help="Only cases whose name matches; shell patterns; repeatable."),
]
Tags = Annotated[list[str] | None, Parameter(name="--tag", negative="", help="Only cases with this tag; repeatable.")]
Toolchains = Annotated[
    list[str] | None,
    Parameter(
        name="--toolchain",
        negative="",
        help="Release of IREE, as in 3.12.0, installed into the cache once; repeatable: the others are compared with "
        "the first (default: the one that is installed).",
    ),
]
Positive = Annotated[float | None, Parameter(validator=Number(gt=0, lt=10_000_000))]
Count = Annotated[int | None, Parameter(validator=Number(gte=1))]

app = App(
    name="harness",
    help="Measure what ML compilers do: models x compiler-flag variants x devices, through IREE's own tools.",
    version=__version__,
)
