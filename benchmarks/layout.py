"""What the path of an installation does to a program's time, with worker processes as they are and with equal heaps.

    make layout        (or: .venv/bin/python -m benchmarks.layout; two minutes)

One installation of IREE is called by names of several lengths, and adds two arrays. All processes call the same file of
the same module with the same inputs, so that every difference between names is a mistake. docs/statistics.md has the
table.
"""

import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.documents import replace_between
from harness.cache import environments_root
from harness.machine.environment import capture_environment, processor
from harness.machine.processor import last_core
from harness.measure.session import WORKER, WorkerSession
from harness.text import plural
from harness.toolchain import get_toolchains

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "suites" / "operators" / "add-broadcast-f32.mlir"
RELEASE = "3.6.0"
FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=x86-64-v3",
)
SHAPES = ((2048, 1024), (1024,))
LENGTHS = (1, 5, 9, 17, 20, 25, 33)
PROCESSES, TURNS, CALLS = 9, 8, 5
BEGIN, END = "<!-- layout: begin -->", "<!-- layout: end -->"
SHIFT = "_BLOCK, _BLOCKS = 65_536, 4"


def main() -> None:
    """Measure, print and write the table."""
    (toolchain,) = get_toolchains([RELEASE], root=environments_root(), on_install=print)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        module = folder / "module.vmfb"
        subprocess.run([str(toolchain.iree_compile), str(PROGRAM), "-o", str(module), *FLAGS], check=True)
        for position, shape in enumerate(SHAPES):
            np.save(folder / f"input{position}.npy", np.random.default_rng(position).standard_normal(shape, np.float32))
        workers = {"equal heaps": _without_shift(folder), "as they are": WORKER}
        pythons = {length: _named(folder / ("x" * length), toolchain.python) for length in LENGTHS}
        times: dict[tuple[str, int], list[float]] = {}
        for _ in range(PROCESSES):  # in turns, so that a busy minute meets all
            for how, worker in workers.items():
                for length, python in pythons.items():
                    times.setdefault((how, length), []).append(_time_us(python, worker, folder))
    head = ["workers", *(plural(length, "letter") for length in LENGTHS), "slowest / fastest"]
    lines = [f"| {' | '.join(head)} |", f"| --- |{' ---: |' * (len(head) - 1)}"]
    for how in workers:
        medians = [statistics.median(times[how, length]) for length in LENGTHS]
        cells = [f"{median:.0f} µs" for median in medians]
        lines.append(f"| {' | '.join([how, *cells, f'{max(medians) / min(medians):.2f}'])} |")
    where = f"IREE {RELEASE} on {processor(capture_environment())}; medians of {PROCESSES} processes each."
    text = "\n".join([*lines, "", where])
    print(text)
    replace_between(ROOT / "docs" / "statistics.md", BEGIN, END, text)


def _without_shift(folder: Path) -> Path:
    """A worker that does not shift its heap, with what it needs beside it."""
    own = folder / "worker"
    own.mkdir()
    for file in ("counters.py", "account.py"):
        (own / file).write_text(WORKER.with_name(file).read_text())
    text = WORKER.read_text()
    assert SHIFT in text
    (own / "worker.py").write_text(text.replace(SHIFT, "_BLOCK, _BLOCKS = 0, 0"))
    return own / "worker.py"


def _named(link: Path, python: Path) -> Path:
    """The same interpreter, by another name of its environment's folder."""
    link.symlink_to(python.parents[1])
    return link / "bin" / python.name


def _time_us(python: Path, worker: Path, folder: Path) -> float:
    """What a call takes in a process of its own."""
    session = WorkerSession(
        command=[str(python), "-u", str(worker)],
        opening={"uris": ["local-sync"], "flags": []},
        cpus=last_core(),
        cwd=folder,
        limit_s=60.0,
    )
    arguments = [{"file": str(folder / f"input{position}.npy")} for position in range(len(SHAPES))]
    module: dict[str, Any] = {"module": str(folder / "module.vmfb"), "function": "main", "parameters": {}}
    with session:
        session.ask(op="load", case="add", arguments=arguments, **module)
        session.ask(op="calibrate", case="add", target_ns=1_000_000)
        rounds = [session.ask(op="round", turns=[["add", CALLS]], warm={"add": 1}) for _ in range(TURNS)]
    return statistics.median(float(each["turns"][0]["wall_ns"]) for each in rounds) / CALLS / 1e3


if __name__ == "__main__":
    main()
