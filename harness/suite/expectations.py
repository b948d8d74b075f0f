"""What a suite says of cases that are known to fail: `expect` of a model, and `[[expect]]` tables."""

from __future__ import annotations

from harness.errors import SuiteError
from harness.models.model import Expectation
from harness.suite.schema import ExpectTable
from harness.suite.toml_file import shown

_MISMATCH = "mismatch"
_FAIL = "fail:"


def case_expectation(table: ExpectTable, where: str) -> Expectation:
    """One [[expect]] table.

    Args:
        where: File and table, for error messages.

    Raises:
        SuiteError: It has both of fails and mismatch, or neither.
    """
    if (table.fails is not None) == table.mismatch:
        found = "both" if table.mismatch else "neither"
        raise SuiteError(f"{where} needs exactly one of fails and mismatch = true, and has {found}")
    return Expectation(cases=table.cases, message=table.fails)


def model_expectation(model: str, text: str | None, where: str) -> Expectation | None:
    """What a model's `expect` says of all its cases; None where it has none.

    Raises:
        SuiteError: It is neither `mismatch` nor `fail: part of the message`.
    """
    if text is None:
        return None
    if text == _MISMATCH:
        return Expectation(cases=f"{model}/*", message=None)
    message = text.removeprefix(_FAIL).strip()
    if not text.startswith(_FAIL) or not message:
        raise SuiteError(f"{where}: {shown(text)} must be 'mismatch', or 'fail: ' and a part of the message")
    return Expectation(cases=f"{model}/*", message=message)
