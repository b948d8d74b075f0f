"""A run's report with every text cut to what a comment has room for; its figures stay as they are."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from harness.report.comparison.form import Form, size_bytes

_T = TypeVar("_T")
_FORM = Form(full=False)
# Of a command line, what it takes; half a command is worse than none.
_LONGEST_COMMAND_BYTES = 2_000
_COMMANDS = ("repro",)
_LOGS = ("stderr",)


def cut_texts(value: _T) -> _T:
    """The same value, a dataclass, with all names, reasons and notes in it on one line and of a bounded length."""
    changes = {field.name: _cut(field.name, getattr(value, field.name)) for field in fields(value)}  # type: ignore[arg-type]
    return replace(value, **changes)  # type: ignore[type-var]


def _cut(name: str, value: Any) -> Any:
    if name in _LOGS:
        return _FORM.log(value)
    if name in _COMMANDS:
        return tuple(line for line in value if size_bytes(line) <= _LONGEST_COMMAND_BYTES)
    if isinstance(value, str):
        return _FORM.cut(value)
    if isinstance(value, tuple):
        return tuple(_cut("", one) for one in value)
    if is_dataclass(value) and not isinstance(value, type):
        return cut_texts(value)
    return value
