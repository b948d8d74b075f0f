"""`harness new`: a plugin, a suite or those of the harness, which work as they are and are there to be changed."""

from __future__ import annotations

import keyword
import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from string import Template

from cyclopts import App

from harness import __version__
from harness.cli.app import app
from harness.cli.output import tell
from harness.errors import ExitCode, UsageError
from harness.files import shipped
from harness.plugins import PLUGINS
from harness.store.files import writing

new_app = App(name="new", help="Begin a plugin or a suite of your own, or write out the suites of the harness.")
app.command(new_app)

# What is written, with $names for what differs; .txt, since no tool can read them before they are filled in.
_TEMPLATES = Path(__file__).with_name("templates")


@new_app.command
def plugin(name: str, *, out: Path | None = None) -> int:
    """Write a package with a plugin: entry point, options, a rewrite, its test, and a suite that runs it.

    Args:
        name: Its name in suites, such as fold-transposes.
        out: The folder (default: the name).
    """
    _check_name(name, "plugin")
    package = name.replace("-", "_")
    if keyword.iskeyword(package) or find_spec(package) is not None or name in PLUGINS.names:
        raise UsageError(f"{name!r} is the name of a Python package or a plugin already; choose another")
    folder = out or Path(name)
    suite = {"file": "example.toml", "mlir": "program.mlir", "subject": name, "variant": name}
    _write(
        folder,
        {
            "pyproject.toml": "pyproject.toml.txt",
            f"{package}/__init__.py": "plugin.py.txt",
            f"{package}/rewrites.py": "rewrites.py.txt",
            f"tests/test_{package}.py": "test.py.txt",
            "README.md": "README.md.txt",
            "example.toml": "suite.toml.txt",
            "program.mlir": "program.mlir.txt",
        },
        {"name": name, "package": package, "release": __version__, **suite, "change": f'plugins = ["{name}"]'},
    )
    tell(f"{folder}: a package with the plugin {name}; README.md there says how to install, test and run it")
    return ExitCode.OK


@new_app.command
def suite(name: str, *, out: Path = Path()) -> int:
    """Write a suite of one small program and two variants, which runs as it is.

    Args:
        name: Of the suite; its files are NAME.toml and NAME.mlir.
        out: The folder.
    """
    _check_name(name, "suite")
    file = out / f"{name}.toml"
    change = (
        '# flags of iree-compile; plugins = ["NAME"] too, `harness plugins` lists them\nflags = ["--iree-opt-level=O3"]'
    )
    values = {"name": name, "file": str(file), "mlir": f"{name}.mlir", "subject": "more optimisation", "variant": "o3"}
    _write(out, {f"{name}.toml": "suite.toml.txt", f"{name}.mlir": "program.mlir.txt"}, {**values, "change": change})
    tell(f"{file}: a suite of {name}.mlir in two variants; run it with `harness run {file}`")
    return ExitCode.OK


@new_app.command
def examples(*, out: Path = Path()) -> int:
    """Write out the suites that come with the harness, and the flag sets and docs that they name.

    Args:
        out: The folder.
    """
    folders = ("suites", "flagsets", "docs")
    for name in folders:
        if (out / name).exists():
            raise UsageError(f"{out / name}: is there already; choose another folder with --out")
    files = [file for name in folders for file in shipped(name).rglob("*") if file.is_file() and file.suffix != ".pyc"]
    for file in files:
        path = out / file.relative_to(shipped(""))
        with writing(path, "choose another folder with --out"):
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, path)
    tell(f"{', '.join(str(out / name) for name in folders)}: begin with `harness run {out / 'suites' / 'smoke.toml'}`")
    return ExitCode.OK


def _check_name(name: str, noun: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or len(name) > 64:
        raise UsageError(f"a {noun} cannot be called {name[:80]!r}; take small letters, digits and dashes: my-{noun}")


def _write(folder: Path, files: dict[str, str], values: dict[str, str]) -> None:
    """Write files from the templates of these names; none is overwritten."""
    for name in files:
        if (folder / name).exists():
            raise UsageError(f"{folder / name}: is there already; choose another name, or another folder with --out")
    for name, template in files.items():
        path = folder / name
        text = (_TEMPLATES / template).read_text(encoding="utf-8")
        with writing(path, "choose another folder with --out"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(Template(text).substitute(values), encoding="utf-8")
