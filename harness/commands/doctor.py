"""What `harness doctor` does."""

from __future__ import annotations

import shutil
import sys
from typing import Literal

from harness.cache import environments_root
from harness.errors import ExitCode, ToolchainError
from harness.process import Limits


def doctor_command(output_format: Literal["terminal", "json"]) -> int:
    """`harness doctor`."""
    from harness.doctor import diagnose, render_json, render_terminal
    from harness.toolchain import find_toolchain, installed_environments
    from harness.toolchain.find import Toolchain

    toolchain: Toolchain | ToolchainError
    try:
        toolchain = find_toolchain()
    except ToolchainError as error:
        toolchain = error
    environments = installed_environments(environments_root())
    diagnosis = diagnose(toolchain, environments, limits=Limits(seconds=60))
    if output_format == "json":
        sys.stdout.write(render_json(diagnosis))
    else:
        width = shutil.get_terminal_size((100, 24)).columns
        sys.stdout.write(render_terminal(diagnosis, width=width, color=sys.stdout.isatty()))
    return ExitCode.OK if isinstance(toolchain, Toolchain) else ExitCode.USAGE
