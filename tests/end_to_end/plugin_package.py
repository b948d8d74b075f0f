"""The example package, installed beside a harness of its own as a user would, without network."""

from __future__ import annotations

import shutil
import site
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import tomli

from tests.end_to_end.command import Ended, Harness, importable

REPOSITORY = Path(__file__).parents[2]
EXAMPLE = REPOSITORY / "tests" / "example_plugins"
COMPILER = shutil.which("cc")


@dataclass(frozen=True)
class Installed(Harness):
    """A harness in an environment of its own, where the example package is installed too."""

    environment: Path

    def tools(self) -> list[Path]:
        """Its programs, and IREE's, which lie beside this interpreter."""
        return [self.environment, *super().tools()]

    def __call__(self, *arguments: str, **environment: str) -> Ended:
        """Run a command line to its end, in a fresh process of the environment."""
        return self.ended(*arguments, **environment)


@dataclass(frozen=True)
class Beside(Harness):
    """The command where the example package lies on Python's path, as if it were installed."""

    packages: Path

    def __call__(self, *arguments: str, **environment: str) -> Ended:
        """Run a command line to its end, in this process."""
        with importable(self.packages):
            return super().__call__(*arguments, PYTHONPATH=str(self.packages), **environment)


def lay_out(folder: Path) -> Path:
    """Write the example package into a folder, with the metadata that an installer would write; the folder."""
    project = tomli.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    shutil.copytree(EXAMPLE / "example_plugins", folder / "example_plugins")
    metadata = folder / "example_plugins-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: example-plugins\nVersion: 1\n")
    sections = [
        f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in places.items())
        for group, places in project["entry-points"].items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(sections))
    return folder


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
        "--no-compile",
        "--no-warn-script-location",
    ]
    subprocess.run(
        [python, "-m", "pip", "--disable-pip-version-check", "install", *options, str(REPOSITORY), str(package)],
        check=True,
    )
    return python.parent
