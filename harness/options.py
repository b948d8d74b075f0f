"""Tables of a suite -> dataclasses of installed code: a builder's parameters, a plugin's options.

The dataclass is frozen and keyword-only. Fields are checked strictly against their annotations, so that true is no
integer, and Annotated[int, pydantic.Field(ge=1)] bounds one; its __post_init__ may raise ValueError.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

from harness.errors import SuiteError
from harness.suite.toml_file import did_you_mean

_T = TypeVar("_T")


def check_options(kind: type[_T], values: Mapping[str, Any], *, where: str, owner: str, noun: str) -> _T:
    """Turn a table into the dataclass that describes it.

    Args:
        where: The table and key, for error messages: `[models.rdb] params`.
        owner: Whose values they are: `builder 'mlp'`.
        noun: What one of them is called: `parameter`.

    Raises:
        SuiteError: An unknown or missing key, or a value of the wrong type or out of range.
    """
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for key in values:
        if key not in fields:
            hint = did_you_mean(key, list(fields)) if fields else "; it has none"
            raise SuiteError(f"{where}.{key} is not {_article(noun)} {noun} of {owner}{hint}")
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in values:
            raise SuiteError(f"{where}.{name} is missing; {owner} needs it")
    adapters = _adapters(kind)  # type: ignore[arg-type]
    checked = {key: _check_value(adapters[key], value, f"{where}.{key}") for key, value in values.items()}
    try:
        return kind(**checked)
    except ValueError as error:
        raise SuiteError(f"{where}: {error}") from None


def _article(noun: str) -> str:
    return "an" if noun[0] in "aeiou" else "a"


@cache
def _adapters(kind: Any) -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: TypeAdapter(hints[field.name]) for field in dataclasses.fields(kind)}


def _check_value(adapter: TypeAdapter[Any], value: object, where: str) -> Any:
    try:
        return adapter.validate_python(value, strict=True)
    except ValidationError as invalid:
        message = invalid.errors(include_url=False)[0]["msg"]
        raise SuiteError(f"{where}: {message[:1].lower()}{message[1:]}, not {str(value)[:60]!r}") from None
