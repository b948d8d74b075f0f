"""One run of eight cases, whose hosts are scripted, and a suite."""

from dataclasses import replace
from pathlib import Path

from harness.stages.context import Context, FailureNotes, GivenUp, done_in
from harness.stages.options import RunOptions
from harness.stages.prepare import Prepared
from harness.store.run_directory import RunDirectory, load_run
from harness.suite.load import LoadedSuite
from tests.builders import Notes, a_device, a_model, a_suite, a_variant, make_artifact, make_case, make_header
from tests.fakes.fake_toolchain import make_fake_toolchain

# Of one model; each of the variants says how its compiler makes its code.
SUITE = """\
name = "small"
baseline = "stock"
[models.a]
mlir = "models/a/model.mlir"
function = "main"
inputs = [{ shape = [4] }]
[devices.cpu]
uri = "local-sync"
backend = "llvm-cpu"
compile_flags = ["--iree-hal-target-device=local", "--iree-llvmcpu-target-cpu=host"]
"""
MODELS = ("a", "b", "c", "d")
FLAGS = {"stock": ("--iree-llvmcpu-target-cpu=host",), "fast": ("--fake-code=fast",)}
GENERATIONS = 3
CASES = tuple(
    make_case(variant, model=model, compile_flags=flags) for model in MODELS for variant, flags in FLAGS.items()
)


class Asking:
    """A run in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notes = Notes()
        self.toolchain = make_fake_toolchain(folder / "tools")
        header = make_header(cases=CASES, settings={"budget_s": 2.4, "generations": GENERATIONS, "seed": 0})
        self.directory = RunDirectory.create(folder / "results", header)
        variants = [a_variant(name, *flags) for name, flags in FLAGS.items()]
        suite = a_suite(*variants, models=tuple(map(a_model, MODELS)), devices=(a_device(),))
        self.prepared = Prepared(
            loaded=LoadedSuite(suite=suite, text_sha256=""),
            toolchains=(self.toolchain,),
            plugins={},
            peers={},
            cases=CASES,
            devices={},
        )
        self.artifacts = {}
        for name in MODELS:
            program = folder / "models" / name / "model.mlir"
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text(f"module @{name} {{}}\n")
            self.artifacts[name] = replace(make_artifact(program, arguments=()), name=name, sha256=name * 64)

    def context(self) -> Context:
        """The run, as far as it is."""
        return Context(
            prepared=self.prepared,
            options=RunOptions(Path("suite.toml"), results=self.folder / "results", call_timeout_s=10.0),
            directory=self.directory,
            done=done_in(load_run(self.directory.path)),
            progress=self.notes,
            failures=FailureNotes(self.notes),
            given_up=GivenUp(keep_going=False),
        )
