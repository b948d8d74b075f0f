"""What is compared of a case, and how."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.records.run import Build, Reference

START = "start"
ENCODINGS = "encodings"
BUFFERIZED = "bufferized"
# In the compiler's order, as iree-compile's --compile-to names them. `start` is the model itself. Two are none of
# iree-compile's: `encodings` is the program right after each encoded tensor got the layout that its device wants, and
# `bufferized` is each dispatch right after its tensors became buffers, where its allocations show.
PHASES = (
    START,
    "input",
    "abi",
    "preprocessing",
    "global-optimization",
    "dispatch-creation",
    "flow",
    ENCODINGS,
    "stream",
    "executable-sources",
    "executable-configurations",
    BUFFERIZED,
    "executable-targets",
    "hal",
    "vm",
)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One figure of a case; smaller is better in all of them."""

    name: str
    title: str
    unit: str  # Of its values: `ns`, `bytes`, `count` or `instructions`
    # Relative change below which nothing is called changed; a suite may choose another for each metric that has one. 0:
    # any difference is a change.
    floor: float
    exact: bool  # Equal code gives equal values, so no statistics are needed


LATENCY = Metric(name="latency", title="Latency", unit="ns", floor=0.01, exact=False)
# A counted change is a change from one generation on; the floor keeps a loop's odd iteration out.
INSTRUCTIONS = Metric(name="instructions", title="Instructions", unit="instructions", floor=0.0005, exact=False)
# A choice, and no measured figure: compiles vary more than calls, and nobody acts on less than a twentieth.
COMPILE_TIME = Metric(name="compile-time", title="Compilation Time", unit="ns", floor=0.05, exact=False)

STATISTICAL = (LATENCY, INSTRUCTIONS, COMPILE_TIME)
# A regression of these is one without a gate.
TIMED = (LATENCY.name, COMPILE_TIME.name)


# A choice, as that of compile times: another constant, string or alignment moves a module's size by less, and nobody
# acts on it. Of a count, one more is a change of the program.
_FLOOR_OF_BYTES = 0.01


def _exact(name: str, title: str, unit: str) -> Metric:
    return Metric(name=name, title=title, unit=unit, floor=_FLOOR_OF_BYTES if unit == "bytes" else 0.0, exact=True)


# Of the build, by the statistics and sizes that every run records.
BUILD_FACTS: dict[Metric, Callable[[Build], float | None]] = {
    _exact("module-size", "Module Size", "bytes"): lambda one: one.sizes.module_bytes if one.sizes else None,
    _exact("dispatch-size", "Dispatch Size", "bytes"): lambda one: (
        sum(one.sizes.dispatch_bytes.values()) if one.sizes else None
    ),
    _exact("dispatches", "Dispatch Count", "count"): lambda one: one.statistics.dispatches if one.statistics else None,
    _exact("copies", "Copies", "count"): lambda one: one.statistics.copies if one.statistics else None,
    _exact("fills", "Fills", "count"): lambda one: one.statistics.fills if one.statistics else None,
    _exact("transient-memory", "Transient Memory", "bytes"): lambda one: (
        one.statistics.transient_bytes if one.statistics else None
    ),
}

# Of the one iree-benchmark-module process that every run asks.
REFERENCE_FACTS: dict[Metric, Callable[[Reference], float | None]] = {
    _exact("host-peak-memory", "Peak Host Memory", "bytes"): lambda one: one.host_peak_bytes,
    _exact("device-peak-memory", "Peak Device Memory", "bytes"): lambda one: one.device_peak_bytes,
}


def ir_metric(name: str) -> Metric:
    """The metric of an op count by its key in results, `phase/op`."""
    phase, _, op = name.partition("/")
    return _exact(name, f"{op} at {phase}", "count")


def metric_named(name: str) -> Metric | None:
    """The metric of that name, an op count included; None: there is none."""
    phase, _, op = name.partition("/")
    return METRICS.get(name) or (ir_metric(name) if phase in PHASES and op else None)


EXACT = (*BUILD_FACTS, *REFERENCE_FACTS)
METRICS: dict[str, Metric] = {metric.name: metric for metric in (*STATISTICAL, *EXACT)}
FLOORS: dict[str, float] = {metric.name: metric.floor for metric in METRICS.values() if metric.floor > 0}

# The ratios that a history has beside these figures: of a latency to that of the suite's baseline variant, and to
# that under the reference toolchain, both between turns of the same rounds.
LATENCY_VS_BASELINE = "latency-vs-baseline"
LATENCY_VS_REFERENCE = "latency-vs-reference"
RATIO_TITLES: Mapping[str, str] = {
    LATENCY_VS_BASELINE: "Latency vs. baseline",
    LATENCY_VS_REFERENCE: "Latency vs. reference toolchain",
}


def metric_title(name: str) -> str:
    """What a figure of a history is called: `Latency`, `Latency vs. baseline`; its name where nobody knows it."""
    metric = metric_named(name)
    return RATIO_TITLES.get(name) or (metric.title if metric is not None else name)


# Figures with noise; all of them are above zero.
NOISY_METRICS = frozenset((*(metric.name for metric in STATISTICAL), *RATIO_TITLES))
# The version's own text is in every module, so its size changes with every release and shows nothing else.
_NO_EVIDENCE = "module-size"
_COUNTED = frozenset(metric.name for metric in (INSTRUCTIONS, *EXACT)) - {_NO_EVIDENCE}


def is_exact(metric: str) -> bool:
    """Whether equal code gives equal values of a metric of a history, so that any difference is a change."""
    return metric not in NOISY_METRICS


def shows_the_program(metric: str) -> bool:
    """Whether another figure shows that a program is another one."""
    return metric in _COUNTED or "/" in metric
