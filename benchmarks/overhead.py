"""What the harness itself costs, beside the compiling and measuring that it is asked for.

    make overhead      (or: .venv/bin/python benchmarks/overhead.py)

prints one Markdown table: each figure with its goal. Whole-process figures are medians of several fresh processes.
Nothing here is a test: timings on a shared machine swing by tens of per cent. docs/architecture.md keeps a table.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from harness.cache import cache_root
from harness.compile import BuildCache, CompileRequest, cache_key
from harness.models.materialize import materialize
from harness.models.model import Model
from harness.process import Limits
from harness.stages.prepare import prepare
from harness.store.run_directory import load_run
from harness.suite.cases import Selection, plan_cases
from harness.suite.devices import Presence
from harness.suite.load import Device, FlagSet, Suite, Variant

ROOT = Path(__file__).parents[1]
SUITE = Path("suites/esrgan.toml")
TAG = "block"  # without the whole networks, whose compiles take an hour
BUDGET_S = 150
HARNESS = [str(Path(sys.executable).with_name("harness"))]


def seconds(action: Callable[[], object], times: int) -> float:
    """Median wall time of an action."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        action()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def help_seconds() -> float:
    """`harness --help` as a fresh process."""
    return seconds(lambda: subprocess.run([*HARNESS, "--help"], capture_output=True, check=True), 11)


def warm_plan_seconds() -> float:
    """A fresh process that loads, plans and materialises suites/esrgan.toml and looks every case up in the cache."""
    command = [sys.executable, "-m", "benchmarks.overhead", "warm-plan"]
    subprocess.run(command, capture_output=True, check=True, cwd=ROOT)
    return seconds(lambda: subprocess.run(command, capture_output=True, check=True, cwd=ROOT), 5)


def warm_plan() -> None:
    """What that process does."""
    prepared = prepare(SUITE, Selection(tags=(TAG,)))
    cases = [case for case in prepared.cases if case.peer is None]
    models = {case.model for case in cases}
    artifacts = {
        model.name: materialize(
            model, store=cache_root() / "models", toolchain=prepared.toolchain, limits=Limits(seconds=60)
        )
        for model in prepared.suite.models
        if model.name in models
    }
    cache = BuildCache(cache_root())
    found = 0
    for case in cases:
        artifact = artifacts[case.model]
        request = CompileRequest(
            case=case,
            toolchain=prepared.toolchain,
            model=artifact.mlir,
            model_sha256=artifact.sha256,
            function=artifact.function,
            host_cpu="",
            limits=Limits(),
        )
        found += cache.find(cache_key(request), case.name) is not None
    sys.stdout.write(f"{len(cases)} cases, {found} found\n")


def plan_seconds(cases: int) -> float:
    """Planning a matrix of so many cases: 100 models x 100 variants x the rest in devices."""
    flag_set = FlagSet(name="f", compile=("--iree-opt-level=O3",))
    suite = Suite(
        name="large",
        description="",
        path=Path("large.toml"),
        baseline="v0",
        models=tuple(Model(name=f"m{number}", params={}, parameters={}) for number in range(100)),
        variants=tuple(
            Variant(name=f"v{number}", flag_sets=(flag_set,), flags=(f"--iree-flag-{number}",)) for number in range(100)
        ),
        devices=tuple(
            Device(name=f"d{number}", uri=("local-sync",), backend="llvm-cpu", compile_flags=("--iree-x",))
            for number in range(cases // 10_000)
        ),
        include=("*",),
        exclude=("m99/v99@*",),
    )
    model_ids = {model.name: model.name for model in suite.models}
    devices = {device.name: Presence() for device in suite.devices}
    return seconds(lambda: plan_cases(suite, model_ids=model_ids, toolchain="3.13.0", plugins={}, devices=devices), 3)


def own_share_of_a_run() -> tuple[float, float]:
    """Wall time of a run of suites/esrgan.toml in seconds, and the harness's own share of it.

    Not the harness's: compiles (as long as any runs), iree-run-module and iree-benchmark-module, worker start-up with
    loading and warming up, and timed turns.
    """
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        command = [sys.executable, "-m", "benchmarks.overhead", "traced-run", folder, str(trace)]
        subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        measured = json.loads(trace.read_text())
        (run,) = [load_run(path) for path in Path(folder).iterdir() if path.is_dir()]
    turns = sum(turn.wall_ns for one in run.rounds for turn in one.turns) / 1e9
    others = measured["children_s"] + measured["workers_s"] + turns
    return measured["wall_s"], 1 - others / measured["wall_s"]


def traced_run(results: str, trace: str) -> None:
    """A run in this process, with the time spent waiting for children and for workers to get ready added up."""
    import threading

    from harness import process
    from harness.cli import run_command_line
    from harness.measure.session import WorkerSession

    lock = threading.Lock()
    busy = {"children": 0, "since": 0.0, "children_s": 0.0, "workers_s": 0.0}
    wait, ask, enter = process._wait, WorkerSession.ask, WorkerSession.__enter__

    def traced_wait(child: subprocess.Popen[bytes]) -> tuple[int, int | None]:
        with lock:
            if busy["children"] == 0:
                busy["since"] = time.perf_counter()
            busy["children"] += 1
        try:
            return wait(child)
        finally:
            with lock:
                busy["children"] -= 1
                if busy["children"] == 0:
                    busy["children_s"] += time.perf_counter() - busy["since"]

    def traced_ask(self: WorkerSession, **request: object) -> object:
        started = time.perf_counter()
        try:
            return ask(self, **request)  # type: ignore[arg-type]
        finally:
            if request["op"] in {"load", "calibrate"}:
                busy["workers_s"] += time.perf_counter() - started

    def traced_enter(self: WorkerSession) -> WorkerSession:
        started = time.perf_counter()
        try:
            return enter(self)
        finally:
            busy["workers_s"] += time.perf_counter() - started

    process._wait = traced_wait
    WorkerSession.ask = traced_ask  # type: ignore[method-assign, assignment]
    WorkerSession.__enter__ = traced_enter  # type: ignore[method-assign]
    started = time.perf_counter()
    run_command_line(["run", SUITE.as_posix(), "--tag", TAG, "--budget", str(BUDGET_S), "--results", results])
    wall = time.perf_counter() - started
    Path(trace).write_text(json.dumps({"wall_s": wall, **busy}))


def main() -> None:
    """Measure everything and print the table."""
    wall, share = own_share_of_a_run()
    rows = [
        ("`harness --help`, fresh process", "under 0.3 s", f"{help_seconds():.2f} s"),
        (
            "plan and cache look-ups, warm suites/esrgan.toml, fresh process",
            "under 1 s",
            f"{warm_plan_seconds():.2f} s",
        ),
        ("the harness's own time in a run of suites/esrgan.toml", "at most 5 %", f"{share:.1%} of {wall:.0f} s"),
        ("planning 10,000 cases", "", f"{plan_seconds(10_000):.2f} s"),
        ("planning 30,000 cases", "", f"{plan_seconds(30_000):.2f} s"),
        ("planning 100,000 cases", "under 5 s", f"{plan_seconds(100_000):.2f} s"),
    ]
    sys.stdout.write("| what | goal | measured |\n| --- | --- | --- |\n")
    sys.stdout.writelines(f"| {what} | {goal} | {figure} |\n" for what, goal, figure in rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["warm-plan"]:
        warm_plan()
    elif sys.argv[1:2] == ["traced-run"]:
        traced_run(*sys.argv[2:])
    else:
        main()
