"""A made-up suite as the asker has it: planned cases, models as files, and the run's directory."""

import hashlib
import sys
from datetime import datetime, timezone
from pathlib import Path

from benchmarks.fleet.sizes import COMPILER, RELEASE, Size
from benchmarks.fleet.work import random_bytes
from harness import __version__
from harness.fleet.placing import Offer, OfferedToolchain, own_versions
from harness.machine.environment import capture_environment
from harness.models.inputs import write_arguments
from harness.models.materialize import ModelArtifact, record
from harness.models.model import Input, Model
from harness.progress import Progress
from harness.records.case import Case
from harness.records.run import SCHEMA_VERSION, Failure, Header, Run, ToolchainRecord
from harness.stages.options import RunOptions
from harness.stages.prepare import Context, Done, FailureNotes, GivenUp, Prepared
from harness.store.run_directory import RunDirectory
from harness.suite.load import Device, Suite, Variant
from harness.toolchain import Toolchain
from harness.toolchain.devices import DeviceInfo, DeviceProbe
from harness.toolchain.host_cpu import TargetCpu

_DEVICE = Device(
    name="cpu",
    uri=("local-sync",),
    backend="llvm-cpu",
    pin=True,
    compile_flags=(
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=host",
    ),
)


def offer_of(name: str, cores: int) -> Offer:
    """What a simulated host offers."""
    environment = capture_environment()
    environment["machine"] = {**environment["machine"], "class": "simulated"}
    probe = DeviceProbe(driver="local-sync", devices=(DeviceInfo(uri="local-sync", name="this CPU"),))
    cpu = TargetCpu(name="znver3", features="+avx2,+fma")
    return Offer(
        name=name,
        versions=own_versions(),
        cores=cores,
        environment=environment,
        drivers={"local-sync": probe},
        toolchains={RELEASE: OfferedToolchain(compiler_sha256=COMPILER, cpu=cpu)},
    )


def suite_of(size: Size) -> Suite:
    """A suite in memory."""
    models = [Model(name=f"model-{number:04}", params={}, parameters={}) for number in range(size.models)]
    variants = [_variant(number) for number in range(size.variants)]
    return Suite(
        name="made-up",
        description="",
        path=Path("made-up.toml"),
        baseline=variants[0].name,
        models=tuple(models),
        variants=tuple(variants),
        devices=(_DEVICE,),
        budget_s=size.budget_s,
        generations=size.generations,
    )


def _variant(number: int) -> Variant:
    return Variant(name=f"variant-{number:02}", flags=(f"--iree-llvmcpu-distribution-size={number + 1}",))


def cases_of(suite: Suite) -> tuple[Case, ...]:
    """All models x variants."""
    return tuple(_case(model, variant, suite.baseline) for model in suite.models for variant in suite.variants)


def _case(model: Model, variant: Variant, baseline: str) -> Case:
    name = f"{model.name}/{variant.name}@{_DEVICE.name}"
    return Case(
        id=hashlib.sha256(name.encode()).hexdigest()[:16],
        name=name,
        model=model.name,
        variant=variant.name,
        device=_DEVICE.name,
        toolchain=RELEASE,
        baseline=variant.name == baseline,
        uri=_DEVICE.uri,
        backend=_DEVICE.backend,
        pin=_DEVICE.pin,
        compile_flags=(*_DEVICE.compile_flags, *variant.flags),
        run_flags=(),
        plugins=(),
        tags=(),
    )


def write_models(suite: Suite, size: Size, folder: Path, salt: str) -> dict[str, ModelArtifact | Failure]:
    """Programs that nobody compiles, each another one, and their arguments.

    Args:
        salt: Other programs, so other cache keys, for each salt.
    """
    made: dict[str, ModelArtifact | Failure] = {}
    for number, model in enumerate(suite.models):
        program = folder / model.name / "model.mlir"
        text = f"// {model.name} {salt} {random_bytes(model.name + salt, size.program_bytes // 2).hex()}"
        if not program.exists():
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text(text)
        inputs = (Input(shape=(size.argument_bytes // 4,), dtype="f32", seed=number),)
        made[model.name] = ModelArtifact(
            name=model.name,
            mlir=program,
            sha256=hashlib.sha256(text.encode()).hexdigest(),
            mlir_bytes=len(text),
            function="main",
            inputs=inputs,
            arguments=write_arguments(inputs, program.parent),
            parameters={},
        )
    return made


def begin(folder: Path, size: Size, salt: str, progress: Progress) -> Context:
    """A run that begins in this folder, or goes on where there is one: as `harness run` has it before it compiles.

    Args:
        folder: Of programs and results.
        salt: See write_models.
    """
    suite = suite_of(size)
    cases = cases_of(suite)
    artifacts = write_models(suite, size, folder / "models", salt)
    toolchain = Toolchain(
        version=RELEASE,
        revision="",
        compiler_sha256=COMPILER,
        python=Path(sys.executable),
        compiler_tools=folder,
        runtime_tools=folder,
    )
    results = folder / "results"
    results.mkdir(exist_ok=True)
    begun = next((path for path in results.iterdir() if path.is_dir()), None)
    if begun is None:
        run = Run(header=_header(suite, cases, artifacts, folder))
        directory = RunDirectory.create(results, run.header)
    else:
        directory, run = RunDirectory.resume(begun)
    return Context(
        artifacts=artifacts,
        prepared=Prepared(
            suite=suite,
            toolchains=(toolchain,),
            plugins={},
            peers={},
            cases=cases,
            devices={_DEVICE.name: "this CPU"},
        ),
        options=RunOptions(suite.path, results=results),
        directory=directory,
        done=Done(run),
        progress=progress,
        failures=FailureNotes(progress),
        given_up=GivenUp(keep_going=False),
    )


def _header(
    suite: Suite, cases: tuple[Case, ...], artifacts: dict[str, ModelArtifact | Failure], folder: Path
) -> Header:
    models = [artifact for artifact in artifacts.values() if isinstance(artifact, ModelArtifact)]
    now = datetime.now(timezone.utc)
    return Header(
        schema_version=SCHEMA_VERSION,
        id=suite.name,
        suite=str(suite.path),
        suite_name=suite.name,
        suite_description="",
        suite_sha256="",
        started=now.isoformat(timespec="seconds"),
        harness_version=__version__,
        harness_commit="",
        command=("python", "-m", "benchmarks.fleet"),
        baseline=suite.baseline,
        toolchains=(ToolchainRecord(version=RELEASE, revision="", compiler_sha256=COMPILER),),
        models=tuple(record(model, cache=folder, suite_folder=folder) for model in models),
        cases=cases,
        groups=(),
        settings={"budget_s": suite.budget_s, "generations": suite.generations, "seed": 0, "fleet": "simulated"},
        environment=capture_environment(),
    )
