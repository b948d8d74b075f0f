"""What a host's answer has to be before anything of it is kept.

A host says which harness it runs, and what it runs may be something else all the same: a checkout with changes, or a
defect. An answer that is none becomes the host's Trouble, and another host does the work.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from harness.compare.engine import Generation
from harness.fleet.orders import Checked, Compiled, CompileOrder, GroupOrder, LookOrder, Measured, Trouble
from harness.fleet.row_orders import RowMeasured
from harness.fleet.state import AGAIN, CHECK, PEAK, REFERENCE, Step
from harness.records.run import Build, Check, Lost, Peak, Reference, Round
from harness.stages.count import Found
from harness.stages.measure import Wanted
from harness.text import one_line

_LONGEST = 100


def of_job(order: CompileOrder | LookOrder, answer: Any) -> Any:
    """The answer to a compile or a look: Compiled, Found, or Trouble."""
    if isinstance(order, LookOrder):
        return _required(answer, isinstance(answer, Found))
    build = answer.build if isinstance(answer, Compiled) else None
    is_build = isinstance(build, Build) and (build.failure is not None or build.cache_key == order.key)
    return _required(answer, is_build)


def of_step(step: Step, asked: tuple[Any, ...], answer: Any) -> Any:
    """The answer to a step of a group, of the type that it has in harness.fleet.tasks, or Trouble."""
    if step == PEAK:
        return _required(answer, answer is None or isinstance(answer, Peak))
    order: GroupOrder = asked[0]
    names = {case.name for case in order.cases}
    if step == CHECK:
        is_one = isinstance(answer, Checked) and _of(answer.checks, Check, names - order.checks.keys(), every=True)
    elif step == REFERENCE:
        is_one = _of(answer, Reference, names, every=True)
    elif step == AGAIN:
        is_one = _of(answer, Lost, names)
    else:
        is_one = isinstance(answer, Measured) and _is_generation(answer, asked[1], names)
    return _required(answer, is_one)


def of_row(answer: Any) -> Any:
    """The answer of a generation of a row: RowMeasured, Trouble, or None where the worker has gone."""
    is_one = isinstance(answer, RowMeasured) and (
        answer.failure is not None or isinstance(answer.generation, Generation)
    )
    return _required(answer, answer is None or is_one)


def _of(records: Any, kind: type[Check | Reference | Lost], names: Set[str], *, every: bool = False) -> bool:
    """Whether these are records of that kind, of some of these cases, or of every one."""
    if not isinstance(records, tuple) or not all(isinstance(record, kind) for record in records):
        return False
    found = {record.case for record in records}
    return found == names if every else found <= names


def _is_generation(answer: Measured, wanted: Wanted, names: Set[str]) -> bool:
    """Whether something of that generation is there, and nothing else."""

    def belongs(result: Round | tuple[Lost, ...]) -> bool:
        if not isinstance(result, Round):
            return _of(result, Lost, names)
        same = (result.group, result.generation) == (wanted.group, wanted.generation)
        return same and names >= {turn.case for turn in result.turns}

    return bool(answer.results) and all(map(belongs, answer.results))


def _required(answer: Any, is_one: bool) -> Any:
    if is_one or isinstance(answer, Trouble):
        return answer
    shown = one_line(repr(answer))[:_LONGEST]
    return Trouble(message=f"its answer is no result of what it was asked ({shown}); install the same harness there")
