"""IREE's own old rule, for people who must compare with its old reports: a fixed threshold for each benchmark's name.

The rule and its thresholds are those of build_tools/benchmarks/common/benchmark_thresholds.py in iree-org/iree when
iree#18144 deleted it (2024-08-14); the code is not.

A threshold belongs to the first expression that matches a benchmark's *name*, so what our names can match decides:

- A CPU device (`local-sync`, `local-task`) gives its architecture: x86-64 meets the 10 % of `x86_64`, 64-bit Arm the
  10 % of `CPU-ARM`, any other the default of 5 %. Other devices meet 5 %, whatever machine they are in.
- The models' rules for x86-64 hold for models named as upstream named them: `MobileNetV2_fp32` has 2 ms.
- The rules for Mali hold for such a model on a device whose name has `GPU-Mali` in it. Those for `MobileNet.*GPU` hold
  where the device's name has `GPU` in capitals in it.
- The rules for the CPUs of Pixel phones are left out: they match none of our names, nor upstream's own of the end.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Literal

from harness.compare.pairs import Pair
from harness.records.case import Case
from harness.records.comparison import Row, Verdict

_NS_PER_MS = 1_000_000
# The largest difference that is still similar: in percent of the base, or in milliseconds.
_Limit = tuple[float, Literal["%", "ms"]]


_LATENCY: Mapping[str, _Limit] = {
    # Models that took 10 ms at most on x86-64.
    r"^DeepLabV3_fp32.*x86_64": (1, "ms"),
    r"^EfficientNet_int8.*x86_64": (1, "ms"),
    r"^MobileNetV1_fp32.*x86_64": (1, "ms"),
    r"^MobileNetV2_fp32.*x86_64": (2, "ms"),
    r"^MobileNetV3Small_fp32.*x86_64": (1, "ms"),
    r"^PersonDetect_int8.*x86_64": (0.5, "ms"),
    r"^PoseNet_fp32.*x86_64": (1, "ms"),
    # Mobile GPUs. Upstream's expressions also asked for tags, such as full-inference, that our names do not have.
    r"^MobileBert.*(int8|fp16).*GPU-Mali": (10, "%"),
    r"^MobileNetV3Small.*GPU-Mali": (2, "ms"),
    r"^DeepLabV3.*GPU-Mali": (1, "ms"),
    r"^PersonDetect.*int8.*GPU-Mali": (0.2, "ms"),
    r"^EfficientNet.*int8.*GPU-Mali": (1.5, "ms"),
    r"^MobileNet.*GPU": (1, "ms"),
    # Everything else; the CPUs had 5 % too until iree#12915 and #12925 ("not stable in general").
    r".*CPU-ARM.*": (10, "%"),
    r".*x86_64.*": (10, "%"),
    r".*": (5, "%"),
}

# By our names of the metrics that upstream judged.
_THRESHOLDS: Mapping[str, Mapping[str, _Limit]] = {
    "latency": _LATENCY,
    "compile-time": {r".*": (100, "%")},  # 5 %, then 50 % (#12308), then 100 % (#13490): "very unstable"
    "dispatch-size": {r".*": (5, "%")},
    "module-size": {r".*": (5, "%")},
    "dispatches": {r".*": (0, "%")},
}

UPSTREAM_METRICS = frozenset(_THRESHOLDS)

_CPU_DRIVERS = ("local-sync", "local-task")
_ARCHITECTURES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "CPU-ARM64", "arm64": "CPU-ARM64"}


def upstream_name(case: Case, architecture: str) -> str:
    """As upstream's: `<model> [<targets>][<compile tags>] <driver>[<execution tags>] with <input> @ <device>`."""
    driver = case.uri.split("://", 1)[0]
    target = case.backend
    if driver in _CPU_DRIVERS:
        target = f"{_ARCHITECTURES.get(architecture.lower(), architecture)}-{case.backend}"
    return f"{case.model} [{target}][{case.variant}] {driver} with default @ {case.device}"


def judge_upstream(metric: str, name: str, base: float, head: float) -> tuple[Verdict, float, str]:
    """Verdict, threshold as a share of the base, and why, of two means; a percentage of zero allows no change."""
    limit, unit = next(limit for pattern, limit in _THRESHOLDS[metric].items() if re.match(pattern, name))
    change = abs(head - base)
    if unit == "ms":
        similar, floor = change <= limit * _NS_PER_MS, limit * _NS_PER_MS / base if base else 0.0
        words = f"{change / _NS_PER_MS:.3g} ms against {limit:g} ms"
    elif base == 0:
        similar, floor = change == 0, 0.0
        words = "zero on both sides" if similar else "the base is zero, so no percentage holds, and any change counts"
    else:
        percent = change / base * 100
        similar, floor = percent <= limit, limit / 100
        words = f"{percent:.1f} % against {limit:g} %"
    verdict: Verdict = "unchanged" if similar else "regressed" if head > base else "improved"
    return verdict, floor, f"upstream's rule: {words}"


def judge_by_upstream(rows: Iterable[Row], pairs: Mapping[str, Pair], architecture: str) -> Iterator[Row]:
    """The rows that upstream had, with its verdicts; a row without figures keeps its own."""
    for row in rows:
        if row.metric not in UPSTREAM_METRICS:
            continue
        if row.base_value is None or row.head_value is None:
            yield row
            continue
        name = upstream_name(pairs[row.case].case, architecture)
        verdict, floor, reason = judge_upstream(row.metric, name, row.base_value, row.head_value)
        yield replace(
            row,
            verdict=verdict,
            floor=floor,
            reason=reason,
            ratio=row.head_value / row.base_value if row.base_value else None,
            ci_low=None,
            ci_high=None,
            p=None,
        )
