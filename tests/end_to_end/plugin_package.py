"""The example package, installed beside a harness of its own as a user would, without network."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

from tests.end_to_end.conftest import Harness

REPOSITORY = Path(__file__).parents[2]
EXAMPLE = REPOSITORY / "tests" / "example_plugins"
COMPILER = shutil.which("cc")


@dataclass(frozen=True)
class Installed(Harness):
    """A harness in an environment of its own, in a folder with the example's suites."""

    tools: Path
    environment: dict[str, str] = field(default_factory=dict)

    def command(self, *arguments: str) -> list[str]:
        """The command line."""
        return [str(self.tools / "harness"), *arguments]

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return self.shell(self.command(*arguments))

    def shell(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        """Run a command as in a terminal in which the environment is active."""
        path = os.pathsep.join([str(self.tools), str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {**os.environ, "PATH": path, **self.environment}
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=240, check=False
        )


def install(folder: Path) -> Path:
    """Make an environment in a folder and install harness and example package there; where its programs lie."""
    package = folder / "package"
    shutil.copytree(EXAMPLE, package)
    code = package / "example_plugins"
    (code / "own_pass.so").write_text("no shared object\n")
    if COMPILER is not None:
        command = [COMPILER, "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", "own_product.so"]
        subprocess.run([*command, "own_product.c"], cwd=code, check=True)
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = environment / "bin" / "python"
    # What the two packages need, pip and the build backend included, is beside this interpreter already.
    beside = dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()])
    printed = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    (Path(printed.stdout.strip()) / "beside.pth").write_text("\n".join(beside) + "\n")
    options = [
        "--quiet",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--ignore-installed",
        "--no-warn-script-location",
    ]
    subprocess.run(
        [python, "-m", "pip", "--disable-pip-version-check", "install", *options, str(REPOSITORY), str(package)],
        check=True,
    )
    return python.parent
