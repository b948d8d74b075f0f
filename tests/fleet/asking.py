"""One run on a fleet, of eight cases whose tools are scripted: `python -m tests.fleet.asking FOLDER ADDRESS`."""

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from harness.fleet.access import access_to
from harness.fleet.bench import FleetBench
from harness.fleet.connection import Fleet, connect
from harness.records.run import Run
from harness.stages.context import Context, FailureNotes, GivenUp, done_in
from harness.stages.options import RunOptions
from harness.stages.prepare import Prepared
from harness.store.run_directory import RunDirectory, load_run
from harness.suite.load import LoadedSuite
from tests.builders import Notes, a_device, a_model, a_suite, a_variant, make_artifact, make_case, make_header
from tests.fakes.fake_toolchain import make_fake_toolchain

MODELS = ("a", "b", "c", "d")
FLAGS = {"stock": ("--iree-llvmcpu-target-cpu=host",), "fast": ("--fake-code=fast",)}
GENERATIONS = 3
CASES = tuple(
    make_case(variant, model=model, compile_flags=flags) for model in MODELS for variant, flags in FLAGS.items()
)


class Asking:
    """A run in a folder, begun or not."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder, self.address = folder, address
        self.notes = Notes()
        self.toolchain = make_fake_toolchain(folder / "tools")
        header = make_header(cases=CASES, settings={"budget_s": 2.4, "generations": GENERATIONS, "seed": 0})
        path = folder / "results" / header.id
        begun = path.is_dir()
        self.directory = RunDirectory(path, header) if begun else RunDirectory.create(folder / "results", header)
        variants = [a_variant(name, *flags) for name, flags in FLAGS.items()]
        np.save(folder / "right.npy", np.array([1, 2, 3], dtype=np.float32))  # as the scripted tools have it
        models = tuple(a_model(name, expected=(folder / "right.npy",)) for name in MODELS)
        suite = a_suite(*variants, models=models, devices=(a_device(),))
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

    @contextlib.contextmanager
    def asked(self) -> Iterator[Fleet]:
        """The fleet, for this process."""
        with connect(access_to(self.address, "--fleet", None, trust_network=False)) as fleet:
            yield fleet

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

    def run(self) -> Run:
        """Do all that is left."""
        with self.asked() as fleet:
            FleetBench(fleet).run(self.context(), self.artifacts, self.folder)
        return load_run(self.directory.path)


if __name__ == "__main__":
    Asking(Path(sys.argv[1]), sys.argv[2]).run()
