"""A part of a program on both sides -> what the compiler did differently there, in sentences; pure.

The sentences follow the compiler's order, since what it decides first brings about the rest: what is fused, layouts and
types of tensors, the code generator's pipeline and tile sizes, and last the final code. Only where the pipeline is
another, operations that take little time come after it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.explain.code import Code, code_changes
from harness.explain.decisions import (
    are_light,
    configuration_changes,
    decisions_of,
    listed,
    microkernel_changes,
    operation_changes,
    tensor_changes,
)
from harness.explain.summary_sentence import Labels, bytes_text, on
from harness.ir.differences import (
    EXECUTABLE_PHASES,
    Executable,
    Line,
    changed_lines,
    first_difference,
    match_executables,
    pipelines_differ,
    same_code,
)
from harness.records.explanation import Part
from harness.records.run import Build
from harness.text import plural

# Where dispatches differ whose IR is the same at every phase: another LLVM makes other code of it.
FINAL_CODE = "final code"
SAME_CODE = "the final code is the same, instruction for instruction"
VAGUE = "the IR differs from"  # Begins what says where the two differ, and not how
_MOST_LINES = 200
# What lines have that say most of a dispatch's code.
_DECIDE = ("translation_info", "lowering_config")


@dataclass(frozen=True, kw_only=True)
class Program:
    """One side's program, as it was compiled."""

    label: str  # What sentences call the side: `3.12.0`
    executables: Mapping[str, Executable]  # By the name of the function that is dispatched
    code: Mapping[str, Code] = field(default_factory=dict)  # Their final code, by the same names, as far as it is known


def with_differences(part: Part, base: Program, head: Program) -> Part:
    """A part with `differs_at`, `what` and `lines`, by what is known of its dispatches on both sides."""
    of_base = [base.executables[name] for name in part.base if name in base.executables]
    of_head = [head.executables[name] for name in part.head if name in head.executables]
    if (of_base and not part.head) or (of_head and not part.base):
        there, label = (of_base, base.label) if of_base else (of_head, head.label)
        computed = listed(_computed(there))
        what = f"only {label} has this dispatch{f': {computed}' if computed else ''}"
        return replace(part, differs_at=_first_phase(there), what=(what,), lines=())
    if not (of_base and of_head) or len(of_base) < len(part.base) or len(of_head) < len(part.head):
        return part
    if len(of_base) == len(of_head) == 1:
        return _of_a_pair(part, (of_base[0], of_head[0]), base, head)
    return _of_several(part, of_base, of_head, base, head)


def _of_a_pair(part: Part, pair: tuple[Executable, Executable], base: Program, head: Program) -> Part:
    codes = _codes(pair, base, head)
    same = [SAME_CODE] if codes is not None and codes[0].fingerprint == codes[1].fingerprint else []
    code = [] if same or codes is None else code_changes(*codes, (base.label, head.label))
    pair = _at_common_phases(*pair)
    last = [*pair[0].phases][-1:]  # where they are the same at the last, they are, whatever they were before
    if last and not same_code(pair[0].phases[last[0]], pair[1].phases[last[0]]):
        phase = first_difference(pair[0].phases, pair[1].phases, EXECUTABLE_PHASES) or ""
        what = (*same, *_decided(pair, phase, (base.label, head.label)), *code)
        return replace(part, differs_at=phase, what=what, lines=_shown(pair[0].phases[phase], pair[1].phases[phase]))
    if code:
        first = "its IR is the same at every phase, and LLVM makes other code of it"
        return replace(part, differs_at=FINAL_CODE, what=(first, *code), lines=())
    return replace(part, differs_at="", what=tuple(same), lines=())


def _of_several(
    part: Part, of_base: Sequence[Executable], of_head: Sequence[Executable], base: Program, head: Program
) -> Part:
    """A part whose work is in other numbers of dispatches on the two sides."""
    labels = (base.label, head.label)
    matches = match_executables(of_base, of_head)
    pairs = [(match.base, match.head) for match in matches if match.base is not None and match.head is not None]
    paired = {id(each) for pair in pairs for each in pair}
    heavy = [[each for each in side if not are_light(decisions_of(each).operations)] for side in (of_base, of_head)]
    if not pairs and len(heavy[0]) == len(heavy[1]) == 1:  # under another name, as in another layout
        pairs = [(heavy[0][0], heavy[1][0])]
    numbers = on(labels, plural(len(of_base), "dispatch", "dispatches"), f"{len(of_head):,}")
    happens = "fuses" if len(of_head) < len(of_base) else "splits" if len(of_head) > len(of_base) else "regroups"
    formed = [f"{labels[1]} {happens} it: {numbers}"]
    formed += operation_changes(_computed(of_base), _computed(of_head), labels)
    kernels = []
    for pair in pairs:
        both, codes = _at_common_phases(*pair), _codes(pair, base, head)
        kernels += configuration_changes(both, *map(decisions_of, both))
        if codes is not None and codes[0].fingerprint != codes[1].fingerprint:
            kernels += code_changes(*codes, labels)
    beside = [each for each in (*of_base, *of_head) if id(each) not in paired]
    others = any(pipelines_differ(*pair) for pair in pairs) and are_light(_computed(beside))
    phase = _first_phase((*of_base, *of_head))
    lines = [[line for executable in side for line in executable.phases.get(phase, ())] for side in (of_base, of_head)]
    what = tuple(dict.fromkeys((*kernels, *formed) if others else (*formed, *kernels)))
    return replace(part, differs_at=phase, what=what, lines=_shown(lines[0], lines[1]))


def _codes(pair: tuple[Executable, Executable], base: Program, head: Program) -> tuple[Code, Code] | None:
    of_base, of_head = base.code.get(pair[0].name), head.code.get(pair[1].name)
    return None if of_base is None or of_head is None else (of_base, of_head)


def _computed(executables: Iterable[Executable]) -> Counter[str]:
    return sum((decisions_of(each).operations for each in executables), Counter[str]())


def _first_phase(executables: Sequence[Executable]) -> str:
    """The first at which all of them are there."""
    return next((phase for phase in EXECUTABLE_PHASES if all(phase in item.phases for item in executables)), "")


def _at_common_phases(base: Executable, head: Executable) -> tuple[Executable, Executable]:
    """Both without phases that the other's release does not have."""
    common = [phase for phase in EXECUTABLE_PHASES if phase in base.phases and phase in head.phases]
    phases = [{phase: each.phases[phase] for phase in common} for each in (base, head)]
    return replace(base, phases=phases[0]), replace(head, phases=phases[1])


def _decided(pair: tuple[Executable, Executable], phase: str, labels: Labels) -> list[str]:
    """What the compiler decided otherwise for dispatches whose IR differs; at least one sentence."""
    base, head = (decisions_of(executable) for executable in pair)
    operations = operation_changes(base.operations, head.operations, labels)
    tensors = tensor_changes(base.tensors, head.tensors, labels)
    if operations and len(base.tensors) != len(head.tensors):
        tensors = []  # follows from what is fused
    configuration = configuration_changes(pair, base, head)
    light = are_light((base.operations - head.operations) + (head.operations - base.operations))
    formed = [*tensors, *operations] if light else [*operations, *tensors]
    if configuration and pipelines_differ(*pair) and light and not tensors:
        formed, configuration = configuration, formed
    changes = [*formed, *configuration, *microkernel_changes(base, head, labels)]
    changes = changes or _sum_changes(changed_lines(pair[0].phases[phase], pair[1].phases[phase]))
    return changes or [f"operations, tensors and tile sizes are the same, and {VAGUE} {phase} on"]


def _sum_changes(lines: Iterable[str]) -> list[str]:
    """Whether one side alone may add up in any order, as the flags of all LLVM's reductions that differ say."""
    sums = {(line[0], "reassoc" in line or "<fast>" in line) for line in lines if "reduce.fadd" in line}
    if sums == {("-", True), ("+", False)}:
        return ["floating-point sums go from any order (reassoc) to their own"]
    if sums == {("-", False), ("+", True)}:
        return ["floating-point sums go from their own order to any (reassoc)"]
    return []


def _shown(base: Sequence[Line], head: Sequence[Line]) -> tuple[str, ...]:
    """The lines that differ, those that decide for others first, as far as anybody reads them."""
    lines = changed_lines(base, head)
    deciding = [line for line in lines if line[0] in "+-" and any(word in line for word in _DECIDE)]
    if deciding:
        lines = [*deciding, "@@", *(line for line in lines if line not in deciding)]
    more = len(lines) - _MOST_LINES
    return (*lines[:_MOST_LINES], f"@@ and {plural(more, 'line')} more") if more > 0 else tuple(lines)


# --- outside of dispatches ---

_SCHEDULE: Mapping[str, tuple[str, Callable[[int], str]]] = {
    **{
        name: (name, "{:,}".format)
        for name in ("dispatches", "copies", "fills", "awaits", "submissions", "executables")
    },
    "transient memory": ("transient_bytes", bytes_text),
    "constants": ("constant_bytes", bytes_text),
}


def schedule_differences(base: Build, head: Build, labels: Labels = ("base", "head")) -> tuple[str, ...]:
    """What differs outside of dispatches, by the compiler's scheduling statistics: `copies: 13 on base, 1 on head`."""
    if base.statistics is None or head.statistics is None:
        return ()
    found = []
    for name, (key, text) in _SCHEDULE.items():
        old, new = (getattr(statistics, key) for statistics in (base.statistics, head.statistics))
        if old != new and None not in (old, new):
            found.append(f"{name}: {on(labels, text(old), text(new))}")
    return tuple(found)
