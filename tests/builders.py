"""Small values that tests of several rooms need; each argument is what the test is about."""

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from harness.measure import LoadableModule
from harness.models.inputs import Argument, write_arguments
from harness.models.materialize import ModelArtifact
from harness.models.model import Input, Model
from harness.peers import Peer, Ready
from harness.peers.peer import AppliedPeer
from harness.plugins import Applied, Flags, NoOptions, Plugin, PluginFile, Step, registry
from harness.progress import Progress
from harness.records.bisection import Bisection
from harness.records.case import Case
from harness.records.comparison import Row, Verdict
from harness.records.run import SCHEMA_VERSION, Header, ModelRecord, Round, ToolchainRecord, Turn
from harness.suite.load import Device, Suite, Variant
from harness.toolchain import Toolchain

CPU_FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)


def git(folder: Path, *arguments: str) -> str:
    """Run git there, without the user's settings."""
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(
        ["git", *who, *arguments],
        cwd=folder,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def commit(folder: Path, message: str = "change", /, **texts: str) -> str:
    """Commit files, named with `_` for the dot and `__` for the slash; an empty text removes one."""
    for name, text in texts.items():
        file = folder / name.replace("__", "/").replace("_", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text) if text else file.unlink()
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message)
    return git(folder, "rev-parse", "HEAD")


EXAMPLE = Path(__file__).parent / "example_plugins"
PRODUCT = (EXAMPLE / "product.mlir").read_text()


def example_file(name: str) -> PluginFile:
    """A file of the example package."""
    return PluginFile(name=name, path=EXAMPLE / "example_plugins" / name)


def a_plugin(name: str, *steps: Step, version: str = "1") -> Plugin[Any]:
    """A plugin without options that does these steps."""
    return Plugin(name=name, version=version, description="", options=NoOptions, steps=lambda _: steps)


def flag_plugin(name: str, *flags: str, version: str = "1") -> Plugin[Any]:
    """A plugin without options that adds these flags of iree-compile."""
    return a_plugin(name, Flags(compile=flags), version=version)


def applied(plugin: Plugin[Any], **options: Any) -> Applied:
    """A plugin as a variant has it, without being registered."""
    return Applied(plugin=plugin, options=options, steps=plugin.steps(plugin.options()), sources_sha256="")


def register(monkeypatch: pytest.MonkeyPatch, group: str, *points: tuple[str, object]) -> None:
    """Pretend that these names and no others are installed in a group of entry points.

    Each stands for a text, which is the entry point's value, or for an object, which is that of `a_package:NAME`.
    """
    package = ModuleType("a_package")
    named = []
    for name, thing in points:
        attribute = re.sub(r"\W", "_", name).upper()
        if not isinstance(thing, str):
            vars(package)[attribute] = thing
        named.append(EntryPoint(name, thing if isinstance(thing, str) else f"a_package:{attribute}", group))
    monkeypatch.setitem(sys.modules, "a_package", package)
    found, installed = EntryPoints(named), registry.installed
    monkeypatch.setattr(
        registry, "installed", lambda wanted, path: found if wanted == group else installed(wanted, path)
    )


def a_peer(name: str = "onnxruntime", *, label: str = "", **options: Any) -> AppliedPeer:
    """A peer as a suite has it, without being registered; its programs do nothing."""
    peer: Peer[Any] = Peer(
        name=name,
        title=name.title(),
        description="",
        install=f"pip install {name}",
        options=NoOptions,
        missing=lambda: None,
        version=lambda: "1",
        refuses=lambda *_: None,
        prepare=lambda *_: Ready(call=lambda: None, outputs=list),
    )
    return AppliedPeer(peer=peer, label=label or name, options=options)


def make_case(
    variant: str = "stock",
    *,
    model: str = "net",
    device: str = "cpu",
    baseline: bool | None = None,
    uri: str = "local-sync",
    compile_flags: Sequence[str] = (),
    run_flags: Sequence[str] = (),
) -> Case:
    """A case named `net/stock@cpu`; `stock` is the baseline unless the test says otherwise."""
    name = f"{model}/{variant}@{device}"
    return Case(
        id=hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16],
        name=name,
        model=model,
        variant=variant,
        device=device,
        toolchain="0.0.0",
        baseline=variant == "stock" if baseline is None else baseline,
        uri=uri,
        backend="llvm-cpu",
        pin=False,
        compile_flags=tuple(compile_flags),
        run_flags=tuple(run_flags),
        plugins=(),
        tags=(),
    )


def make_artifact(
    mlir: Path,
    *,
    inputs: Sequence[Input] = (),
    parameters: Mapping[str, Path] | None = None,
    function: str = "main",
    arguments: Sequence[Argument] | None = None,
) -> ModelArtifact:
    """A model that is ready to be compiled, its arguments written beside it."""
    written = write_arguments(tuple(inputs), mlir.parent) if arguments is None else tuple(arguments)
    return ModelArtifact(
        name="net",
        mlir=mlir,
        sha256="ab" * 32,
        mlir_bytes=mlir.stat().st_size if mlir.exists() else 0,
        function=function,
        inputs=tuple(inputs),
        arguments=written,
        parameters=dict(parameters or {}),
    )


def a_toolchain(version: str = "3.13.0", **fields: Any) -> Toolchain:
    """A toolchain of which nothing is there."""
    nowhere = Path("nowhere")
    usual: dict[str, Any] = {"python": nowhere, "compiler_tools": nowhere, "runtime_tools": nowhere}
    return Toolchain(version=version, revision="", **{**usual, "compiler_sha256": "cc" * 32, **fields})


def a_loadable(name: str, toolchain: Toolchain, **fields: Any) -> LoadableModule:
    """A compiled case as workers are told of it."""
    usual: dict[str, Any] = {"module": Path("module.vmfb"), "function": "main", "arguments": (), "parameters": {}}
    return LoadableModule(name=name, toolchain=toolchain, **{**usual, "run_flags": (), **fields})


def make_header(run_id: str = "20261121-035012-small", **changes: Any) -> Header:
    """The header of a run of `net`, stock and fast."""
    header = Header(
        schema_version=SCHEMA_VERSION,
        id=run_id,
        suite="suites/small.toml",
        suite_name="small",
        suite_description="",
        suite_sha256="5e" * 32,
        started="2026-11-21T03:50:12+00:00",
        harness_version="0.1.0",
        harness_commit="",
        command=("harness", "run", "suites/small.toml"),
        baseline="stock",
        toolchains=(ToolchainRecord(version="3.13.0", revision="", compiler_sha256="cc" * 32),),
        models=(
            ModelRecord(
                name="net", mlir_sha256="aa" * 32, mlir_bytes=100, function="main", inputs=("4xf32 constant 1",)
            ),
        ),
        cases=(make_case("stock"), make_case("fast")),
        groups=(),
        settings={"budget_s": 1.0, "generations": 3},
        environment={"cpu": {"model": "a processor", "logical_cores": 2}},
    )
    return replace(header, **changes)


def make_round(number: int, *, wall_ns: int = 1000) -> Round:
    """A round of net/stock and net/fast."""
    turns = tuple(
        Turn(case=case, calls=10, wall_ns=wall_ns, cpu_ns=wall_ns) for case in ("net/stock@cpu", "net/fast@cpu")
    )
    return Round(group="net@cpu", generation=0, round=number, started_unix_ns=1_700_000_000_000_000_000, turns=turns)


# The text of a suite with one model, two variants and one device, and of its flag-set file.
SUITE = """\
name = "small"
baseline = "stock"
flagset_files = ["flags.toml"]

[models.net]
mlir = "net.mlir"
function = "main"
inputs = [{ shape = [4] }]

[variants.stock]

[variants.tiled]
flagsets = ["tiling"]

[devices.cpu]
uri = "local-sync"
backend = "llvm-cpu"
compile_flags = ["--iree-hal-target-device=local"]
"""

FLAGS = """\
[flagsets.tiling]
compile = ["--iree-opt-data-tiling"]
"""


def a_model(name: str = "net", **fields: Any) -> Model:
    """A model out of an MLIR file that nobody reads."""
    return Model(name=name, mlir=Path(f"{name}.mlir"), params={}, parameters={}, **fields)


def a_variant(name: str = "stock", *flags: str, **fields: Any) -> Variant:
    """A variant with these compile flags."""
    return Variant(name=name, flags=flags, **fields)


def a_device(name: str = "cpu", uri: str = "local-sync", more_uris: Sequence[str] = (), **fields: Any) -> Device:
    """This machine's CPU, unless the test says otherwise."""
    return Device(**{"name": name, "uri": (uri, *more_uris), "backend": "llvm-cpu", **fields})


def a_suite(
    *variants: Variant,
    models: tuple[Model, ...] = (a_model(),),
    devices: tuple[Device, ...] = (a_device(),),
    **fields: Any,
) -> Suite:
    """One model on one device, with the first variant as its baseline."""
    variants = variants or (a_variant(),)
    return Suite(
        name="suite",
        description="",
        path=Path("suite.toml"),
        baseline=variants[0].name,
        models=models,
        variants=variants,
        devices=devices,
        **fields,
    )


def make_row(verdict: Verdict = "unchanged", metric: str = "latency", **fields: Any) -> Row:
    """A row of net/fast@cpu."""
    place = {"case": "net/fast@cpu", "model": "net", "variant": "fast", "device": "cpu"}
    return Row(**{**place, "metric": metric, "verdict": verdict, **fields})


def make_bisection(**fields: Any) -> Bisection:
    """A bisect of two releases."""
    default: dict[str, Any] = {
        "id": "20261122-035012-small-bisect",
        "created": "2026-11-22T03:50:12+00:00",
        "suite": "small.toml",
        "case": "net/stock@cpu",
        "metric": "latency",
        "unit": "ns",
        "floor": 0.01,
        "over": "releases",
        "ends": ("3.6.0", "3.7.0"),
        "positions": (),
        "trials": (),
    }
    return Bisection(**{**default, **fields})


class Notes(Progress):
    """A progress that keeps its notes."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        """Keep it."""
        self.lines.append(text)
