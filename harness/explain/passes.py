"""Two sides of a case -> what their compiles spend in each pass, by iree-compile's own clocks (`--mlir-timing`).

The report adds up all runs of a pass. A pass that only runs a pipeline of other passes is left out, since the time of
those is in it. What is in no pass is the rest of the compile: start, parsing, verification between passes, output.
"""

import json
import math
import re
from collections.abc import Collection
from dataclasses import replace
from functools import partial

from harness.compare.engine import BASE, HEAD, OnBeyond
from harness.compare.samplers import MeasurementPolicy, Module, compile_both
from harness.errors import CaseError
from harness.explain.attribute import Attribution, Generations, Once, Sampled, judge_parts
from harness.explain.parts import Counterparts
from harness.explain.profile import Profile
from harness.ir.differences import Executable
from harness.measure import last_core

SHORT = "shorter passes"
# On one thread, so that the times of passes add up to that of the compile.
_TIMING = ("--mlir-timing", "--mlir-timing-display=list", "--mlir-output-format=json", "--mlir-disable-threading")
_REPORT = re.compile(r"^\[\n.*?^\]$", re.MULTILINE | re.DOTALL)
# Sums, pipelines, analyses, and passes that run other passes, as releases from 3.0 to 3.13 name them.
_IN_OTHERS = re.compile(
    r"root$|Rest$|Total$|'.*' Pipeline$|Pipeline Collection : |\(A\) |(?:.*::)?(?:AttrBasedPipeline"
    r"|AutoInputConversionPipeline|FixedPointIterator|Inliner|JitGlobals|LinkTargetExecutables|\w+LowerExecutableTarget"
    r"|LowerExecutableUsingTransformDialect|MaterializeHomogeneousEncodings|OpPipelineAdaptor"
    r"|PreprocessExecutablesWithPipeline|(?:Configure|Link|Serialize|Translate)(?:All)?Executables"
    r"|(?:Configure|Translate)TargetExecutableVariants)(?:Pass)?$"
)
# Of the first compile: passes that take less on both sides are not judged one by one.
_LEAST = 0.0025


def attribute_passes(
    modules: tuple[Module, Module], policy: MeasurementPolicy, *, once: Once, on_beyond: OnBeyond
) -> Attribution:
    """Compile both sides again and again, and judge the whole compile and each pass of it."""
    base, head = modules

    def measure(number: int) -> Sampled:
        whole, *said = compile_both(base, head, last_core(), policy.limits, number, _TIMING)
        of_base = _profile(BASE, whole.base, said[0])
        return Sampled(latency=whole, base=of_base, head=_profile(HEAD, whole.head, said[1]), seconds=whole.seconds)

    measured = Generations(lambda number: once("passes", number, partial(measure, number)))
    sides = (measured(0).base, measured(0).head)
    names = dict.fromkeys(
        name for side in sides for name, ns in side.dispatch_ns.items() if ns >= _LEAST * side.call_ns
    )
    generations = Generations(lambda number: _folded(measured(number), names))
    task = replace(policy, noise=0.0, cap_s=0.0).task("", lambda number: measured(number).latency)
    parts = [Counterparts(base=_of(name, sides[0]), head=_of(name, sides[1]), matched_by="") for name in names]
    return judge_parts(parts, generations, task, method="passes", on_beyond=on_beyond)


def _of(name: str, profile: Profile) -> tuple[Executable, ...]:
    return (Executable(name=name, phases={}),) if name in profile.dispatch_ns else ()


def _folded(sampled: Sampled, names: Collection[str]) -> Sampled:
    """With the passes of these names, and all others of a side together."""
    sides = []
    for profile in (sampled.base, sampled.head):
        kept = {name: ns for name, ns in profile.dispatch_ns.items() if name in names}
        short_ns = math.fsum(profile.dispatch_ns.values()) - math.fsum(kept.values())
        sides.append(replace(profile, dispatch_ns=kept, device_ns={SHORT: short_ns}))
    return replace(sampled, base=sides[0], head=sides[1])


def _profile(side: str, whole_ns: float | None, said: str) -> Profile:
    passes = read_passes(said)
    if not passes:
        raise CaseError("compile", f"the {side}'s iree-compile prints no times of its passes", said)
    return Profile(calls=1, call_ns=whole_ns or 0.0, dispatch_ns=passes)


def read_passes(stderr: str) -> dict[str, float]:
    """Nanoseconds of each pass, in all reports among what iree-compile prints; {} where there is none."""
    found: dict[str, float] = {}
    for report in _REPORT.findall(stderr):
        try:
            times = [(str(each["name"]), float(each["wall"]["duration"])) for each in json.loads(report) if each]
        except (ValueError, KeyError, TypeError):
            continue  # Lines of something else
        for name, seconds in times:
            if not _IN_OTHERS.match(name):
                short = name.rpartition("::")[2].removesuffix("Pass")  # Which older releases do not have everywhere
                found[short] = found.get(short, 0.0) + seconds * 1e9
    return found
