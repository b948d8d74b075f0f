"""The application that commands register with; a command's options are the fields of one dataclass."""

from __future__ import annotations

from cyclopts import App

from harness import __version__

app = App(
    name="harness",
    help="Measure what ML compilers do: models x compiler-flag variants x devices, through IREE's own tools.",
    version=__version__,
)
