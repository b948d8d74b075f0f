"""An environment with the harness's wheel and the example package's, as a user has them, made without network."""

import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
EXAMPLE = REPOSITORY / "tests" / "example_plugins"
COMPILER = shutil.which("cc")


def install(folder: Path) -> None:
    """Make `environment` in a folder, with wheels of harness and example package."""
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
    # What the two packages need, and pip, is beside this interpreter already. An editable harness there is not found
    # through it, since only files of the environment's own folder add to its path.
    beside = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (folder_of_packages(python) / "beside.pth").write_text("\n".join(beside) + "\n")
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-warn-script-location"]
    as_they_are = ["--no-index", "--no-deps", "--no-build-isolation", "--ignore-installed", "--no-compile"]
    subprocess.run([*pip, *as_they_are, str(REPOSITORY), str(package)], check=True)


def folder_of_packages(python: Path) -> Path:
    """Where the packages of an environment lie."""
    (packages,) = (python.parent.parent / "lib").glob("python*/site-packages")
    return packages
