"""Whether a Vulkan driver's own timestamps of dispatches vary less than wall time, alone and beside hogs.

iree-profile tells the time of each dispatch by the driver's clock, of calls in a process of iree-benchmark-module. It
cannot tell it of the turns of a worker, so each process is one sample here, as each is of other tools.
"""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.documents import replace_between
from benchmarks.verdicts.estimators import spread
from benchmarks.verdicts.programs import matmul
from benchmarks.verdicts.recording import Hogs
from harness import process
from harness.measure.session import only_one_measures
from harness.report.markdown import blocks, table
from harness.stats.pairing import FloatArray
from harness.toolchain import Toolchain
from harness.toolchain.devices import VULKAN_DRIVERS, environment_for
from harness.verify.outputs import parse_times

BEGIN = "<!-- made by `python -m benchmarks.verdicts --timestamps`: begin -->"
END = "<!-- --timestamps: end -->"
_SIZE = 96
_CALLS = 20
_PROCESSES = 24
_LIMITS = process.Limits(seconds=300)
# What the runtime says of a driver that does not tell how its clock relates to the system's.
_NEEDED = "VK_EXT_calibrated_timestamps"


class _NoClock(Exception):
    pass


@dataclass(frozen=True, kw_only=True)
class _Sampled:
    """Of each process, nanoseconds of a call."""

    wall: FloatArray
    profiled: FloatArray
    driver: FloatArray


def write_timestamps(document: Path, toolchain: Toolchain) -> None:
    """Measure on the software drivers that are here, and replace what stands between the document's marks."""
    rows = []
    for name, driver in VULKAN_DRIVERS.items():
        environment = environment_for(driver)
        if not environment:
            continue
        for company in ("", "two hogs a core"):
            try:
                with only_one_measures(print), Hogs("two hogs a core" if company else ""):
                    sampled = _sample(toolchain, dict(environment))
            except _NoClock:
                rows.append([name, "-", "-", "has no calibrated timestamps"])
                break
            cells = [f"{np.median(ns) / 1e6:.2f} ms ± {_robust(ns):.0f} %" for ns in vars(sampled).values()]
            rows.append([f"{name}{f' beside {company}' if company else ''}", *cells])
    heads = ["driver", "a call by wall time", "the same, profiled", "its dispatches by the driver"]
    text = f"Medians and robust deviations of {_PROCESSES} processes of {_CALLS} calls each, a matmul of {_SIZE}."
    replace_between(document, BEGIN, END, blocks(table(heads, rows, numbers=[False, True, True, True]), text))


def _robust(ns: FloatArray) -> float:
    return 100 * spread(np.log(ns)).robust


def _sample(toolchain: Toolchain, environment: dict[str, str]) -> _Sampled:
    wall, profiled, driver = [], [], []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "model.mlir").write_text(matmul(_SIZE))
        compiler = [str(toolchain.iree_compile), "model.mlir", "-o", "module.vmfb", "--iree-hal-target-device=vulkan"]
        _run(compiler, folder, environment)
        for _ in range(_PROCESSES):
            wall.append(_benchmark(toolchain, folder, environment))
            profile = ("--device_profiling_mode=dispatch-events", "--device_profiling_output=calls.ireeprof")
            profiled.append(_benchmark(toolchain, folder, environment, *profile))
            reader = [str(toolchain.runtime_tool("iree-profile")), "dispatch", "--format=jsonl", "calls.ireeprof"]
            events = [json.loads(line) for line in _run(reader, folder, environment).splitlines()]
            driver.append(sum(event["total_ns"] for event in events if event["type"] == "dispatch_group") / _CALLS)
    return _Sampled(wall=np.array(wall), profiled=np.array(profiled), driver=np.array(driver))


def _benchmark(toolchain: Toolchain, folder: Path, environment: dict[str, str], *more: str) -> float:
    inputs = [f"--input={_SIZE}x{_SIZE}xf32={value}" for value in (1, 2)]
    options = [f"--benchmark_min_time={_CALLS}x", "--time_unit=ns", "--benchmark_format=json"]
    tool = str(toolchain.runtime_tool("iree-benchmark-module"))
    command = [tool, "--device=vulkan", "--module=module.vmfb", "--function=main", *inputs, *options, *more]
    times, _ = parse_times(_run(command, folder, environment))
    return times[0]


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = process.run(command, cwd=folder, limits=_LIMITS, env=environment)
    if _NEEDED in done.stderr:
        raise _NoClock
    if not done.ok:
        raise RuntimeError(f"{command[0]}: {done.stderr[-2000:]}")
    return done.stdout
