"""Compiled suites -> a recording: fresh processes, one after the other, each on one core with one thread."""

import sys
import tempfile
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from pydantic import TypeAdapter

from benchmarks.plugins import engines
from benchmarks.plugins.compiled import Compiled
from benchmarks.plugins.generation import Job
from benchmarks.plugins.recorded import IREE, Group, Header, iree_program, line
from harness import process
from harness.measure import last_core
from harness.measure.session import only_one_measures

ROOT = Path(__file__).parents[2]

_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "MKL", "OMP", "HL")}
_LIMIT_S = 1800.0


def record(benchmark: engines.Benchmark, compiled: Compiled, path: Path, *, generations: int, rounds: int) -> None:
    """Measure all groups, generation by generation, and write the recording anew.

    Raises:
        RuntimeError: A generation fails.
    """
    jobs, groups = _jobs(benchmark, compiled, rounds)
    header = Header(
        benchmark=benchmark,
        started=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        machine=compiled.machine,
        baseline=compiled.baseline,
        peer=engines.PEERS[benchmark],
        versions={IREE: compiled.iree, **engines.versions(benchmark)},
        missing=engines.missing(benchmark),
        programs=tuple(iree_program(one.model, one.variant) for one in compiled.modules),
        groups=groups,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        file.write(line(header))
        for number in range(generations):
            for job in jobs:
                sys.stderr.write(f"generation {number + 1} of {generations}: {job.group}\n")
                with only_one_measures(print):
                    file.write(_measure(replace(job, generation=number)))
                file.flush()


def _jobs(benchmark: engines.Benchmark, compiled: Compiled, rounds: int) -> tuple[tuple[Job, ...], tuple[Group, ...]]:
    """The blocks are a group each; the convolution's two forms compute the same, and are one."""
    models = compiled.models
    together = [[model] for model in models] if benchmark == "esrgan" else [list(models)]
    jobs, groups = [], []
    for several in together:
        first = several[0]
        jobs.append(
            Job(
                benchmark=benchmark,
                group=first.name,
                generation=0,
                rounds=rounds,
                parameters=first.params,
                modules=tuple(one for model in several for one in compiled.of(model)),
                cores=tuple(sorted(last_core() or ())),
            )
        )
        title = first.description if len(several) == 1 else compiled.description
        groups.append(Group(name=first.name, title=title, gflop=engines.gflop(benchmark, first.params)))
    return tuple(jobs), tuple(groups)


def _measure(job: Job) -> str:
    """Run a generation; its lines."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(TypeAdapter(Job).dump_json(job))
        file.flush()
        done = process.run(
            [sys.executable, "-m", "benchmarks.plugins.generation", file.name],
            cwd=ROOT,
            limits=process.Limits(seconds=_LIMIT_S),
            env=_ONE_THREAD,
            cpus=last_core(),
        )
    if not done.ok:
        raise RuntimeError(f"a generation of {job.group} {done.how_it_ended()}:\n{done.stderr[-4000:]}")
    return done.stdout
