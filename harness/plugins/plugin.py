"""What a plugin is, the kinds of steps that it is made of, and the files that it brings."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Generic, TypeVar

from harness.errors import SuiteError

O = TypeVar("O")  # noqa: E741 (options)

# Where a rewrite may stand: after these of iree-compile's phases a module can be printed, changed and compiled on.
REWRITE_PHASES = ("input", "abi", "preprocessing", "global-optimization", "dispatch-creation", "flow", "stream")
_HASH_DIGITS = 16


@dataclass(frozen=True, kw_only=True)
class PluginFile:
    """One file, either of the plugin's package or written by the plugin; it is known by its content."""

    name: str  # What it is called, such as `spec.mlir`
    path: Path | None = None  # Where it lies; None where it is written
    text: str | None = None  # What is written; None where it lies in the package

    @cached_property
    def data(self) -> bytes:
        """Its bytes; OSError where it cannot be read."""
        return self.text.encode() if self.path is None and self.text is not None else Path(self.path or "").read_bytes()

    @cached_property
    def unique_name(self) -> str:
        """Its name with a hash of its bytes in front of the ending: a command line that names it says its content."""
        name = Path(self.name)
        return f"{name.stem}-{hashlib.sha256(self.data).hexdigest()[:_HASH_DIGITS]}{name.suffix}"

    def put_into(self, folder: Path) -> None:
        """Write it under its unique name; OSError where the folder cannot be written."""
        (folder / self.unique_name).write_bytes(self.data)


def package_file(package: str, name: str) -> PluginFile:
    """A file of an installed package, as in `package_file(__package__, "spec.mlir")`; SuiteError where it has none."""
    path = Path(str(files(package).joinpath(name)))
    if not path.is_file():
        raise SuiteError(f"package {package} has no file {name}; install it again, or ask its author")
    return PluginFile(name=path.name, path=path)


def written_file(name: str, text: str) -> PluginFile:
    """A file that the plugin writes, for instance from its options."""
    return PluginFile(name=name, text=text)


@dataclass(frozen=True, kw_only=True)
class Rewrite:
    """A Python function over the module, run in a process of its own under the toolchain's own Python."""

    # `package.module:name`. It is called with an iree.compiler.ir.Module and the plugin's options as keyword arguments,
    # changes the module in place, and returns how many places it matched
    function: str
    phase: str = "input"  # Which of iree-compile's phases the module has gone through when the function sees it
    arguments: Mapping[str, Any] | None = None  # In place of the plugin's options, for a plugin of several rewrites
    # Give the function a keyword argument `target` too, the processor that the program is compiled for in the
    # compiler's words: {"name": "znver4", "features": "+avx512f,-amx-tile", "triple": "x86_64-..."}
    for_target: bool = False


@dataclass(frozen=True, kw_only=True)
class PassPipeline:
    """Passes that iree-compile runs in its preprocessing phase: `builtin.module(util.func(...))`."""

    text: str


@dataclass(frozen=True, kw_only=True)
class FileStep:
    """A step that is a file."""

    file: PluginFile


class TransformSpec(FileStep):
    """A transform-dialect module for the preprocessing phase, with an entry @__transform_main."""


class PdlSpec(FileStep):
    """A module of PDL patterns for the preprocessing phase."""


class TuningSpec(FileStep):
    """A transform-dialect module that gives lowering configurations to operations in codegen."""


@dataclass(frozen=True, kw_only=True)
class TransformLibrary(FileStep):
    """A transform-dialect module that codegen strategies are looked up in."""

    entry: str = ""  # The sequence to run on every executable; "": the one called __kernel_config, which it has to have


@dataclass(frozen=True, kw_only=True)
class CompilerPlugin(FileStep):
    """A shared object that iree-compile loads; it has to be built for exactly the compiler's own revision."""

    activate: tuple[str, ...] = ()  # The identifiers under which it registers what is to be switched on
    flags: tuple[str, ...] = ()  # The plugin's own flags


class ExecutablePlugin(FileStep):
    """A shared object that the runtime of local devices loads, so that dispatches can call functions of it."""


@dataclass(frozen=True, kw_only=True)
class Flags:
    """Flags of iree-compile."""

    compile: tuple[str, ...]


Step = (
    Rewrite
    | PassPipeline
    | TransformSpec
    | PdlSpec
    | TuningSpec
    | TransformLibrary
    | CompilerPlugin
    | ExecutablePlugin
    | Flags
)


@dataclass(frozen=True, kw_only=True)
class Plugin(Generic[O]):
    """A preprocessing step on a model's MLIR, before or inside iree-compile."""

    name: str
    version: str  # Changes whenever the plugin's effect does; part of a case's identity
    description: str
    steps: Callable[[O], tuple[Step, ...]]  # What it does with these options, in order
    options: type[O]  # A frozen keyword-only dataclass of JSON-like types; see harness.plugins.options
    backends: tuple[str, ...] = ()  # Compiler backends that it is for; (): all
    toolchains: str = ""  # A PEP 440 specifier of the releases that it is for; "": all


@dataclass(frozen=True, kw_only=True)
class Applied:
    """A plugin with the options that a variant gives it."""

    plugin: Plugin[Any]
    options: dict[str, Any]  # All of them, defaults included
    steps: tuple[Step, ...]  # What it does with them
    sources_sha256: str  # Hash of the Python sources of its rewrites; "" where it has none

    @property
    def name(self) -> str:
        """The plugin's name."""
        return self.plugin.name

    @property
    def files(self) -> tuple[PluginFile, ...]:
        """The files that its steps read."""
        return tuple(step.file for step in self.steps if isinstance(step, FileStep))
