"""Two sides of a case -> what their compiles spend in each pass, by iree-compile's own clocks (`--mlir-timing`).

The report adds up all runs of a pass. A pass that only runs a pipeline of other passes is left out, since the time of
those is in it. What is in no pass is the rest of the compile: start, parsing, verification between passes, output.
"""

import re
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

# On one thread, so that the times of passes add up to that of the compile.
_TIMING = ("--mlir-timing", "--mlir-timing-display=list", "--mlir-output-format=json", "--mlir-disable-threading")
_ROW = re.compile(r'^\{"wall": \{"duration": +(-?[\d.]+),.*\}, "name": "(.*)"\},?$', re.MULTILINE)
# Sums, pipelines, analyses, and passes that run other passes, as releases from 3.0 to 3.13 name them.
_IN_OTHERS = re.compile(
    r"root$|Rest$|Total$|'.*' Pipeline$|Pipeline Collection : |\(A\) |(?:.*::)?(?:AttrBasedPipeline"
    r"|AutoInputConversionPipeline|FixedPointIterator|Inliner|JitGlobals|LinkTargetExecutables|\w+LowerExecutableTarget"
    r"|LowerExecutableUsingTransformDialect|MaterializeHomogeneousEncodings|OpPipelineAdaptor"
    r"|PreprocessExecutablesWithPipeline|(?:Configure|Link|Serialize|Translate)(?:All)?Executables"
    r"|(?:Configure|Translate)TargetExecutableVariants)(?:Pass)?$"
)


def attribute_passes(
    modules: tuple[Module, Module], policy: MeasurementPolicy, *, once: Once, on_beyond: OnBeyond
) -> Attribution:
    """Compile both sides again and again, and judge the whole compile and each pass of it."""

    def measure(number: int) -> Sampled:
        whole, *said = compile_both(*modules, last_core(), policy.limits, number, _TIMING)
        base, head = (
            Profile(calls=1, call_ns=ns or 0.0, dispatch_ns=passes_of(side, text))
            for side, ns, text in zip((BASE, HEAD), (whole.base, whole.head), said, strict=True)
        )
        return Sampled(latency=whole, base=base, head=head, seconds=whole.seconds)

    generations = Generations(lambda number: once("passes", number, partial(measure, number)))
    base, head = generations(0).base.dispatch_ns, generations(0).head.dispatch_ns
    timed = {name: (Executable(name=name, phases={}),) for name in {**base, **head} if base.get(name) or head.get(name)}
    parts = [
        Counterparts(base=each if name in base else (), head=each if name in head else (), matched_by="")
        for name, each in timed.items()
    ]
    task = replace(policy, noise=0.0, cap_s=0.0).task("", lambda number: generations(number).latency)
    return judge_parts(parts, generations, task, method="passes", on_beyond=on_beyond)


def passes_of(side: str, stderr: str) -> dict[str, float]:
    """Nanoseconds of each pass, in all reports among what iree-compile prints."""
    found: dict[str, float] = {}
    for seconds, name in _ROW.findall(stderr):
        if not _IN_OTHERS.match(name):
            short = name.rpartition("::")[2].removesuffix("Pass")  # Which older releases do not have everywhere
            found[short] = found.get(short, 0.0) + float(seconds) * 1e9
    if not found:
        raise CaseError("compile", f"the {side}'s iree-compile prints no times of its passes", stderr)
    return found
