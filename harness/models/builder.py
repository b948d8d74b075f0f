"""Builders: models that are written by a function of a few parameters, known by their registered names."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

from harness.errors import SuiteError
from harness.registered import load_registered
from harness.suite.toml_file import did_you_mean
from harness.suite.values import Input

ENTRY_POINT_GROUP = "harness.builders"

P = TypeVar("P")


@dataclass(frozen=True, kw_only=True)
class BuiltModel:
    """What a builder gives: a program and how to call it.

    Attributes:
        text: The MLIR module, as text or as bytecode.
        function: Name of the entry function.
        inputs: Its arguments, in order.
    """

    text: str | bytes
    function: str
    inputs: tuple[Input, ...]


@dataclass(frozen=True, kw_only=True)
class Builder(Generic[P]):
    """A registered way to write a model.

    Attributes:
        version: Change it when the model changes for a reason outside the builder's own module; its text is kept by
            name, version, parameters and the source of the modules that define `parameters` and `build`.
        parameters: A frozen keyword-only dataclass with a default for every field. Fields are checked strictly against
            their annotations, so Annotated[int, pydantic.Field(ge=1)] bounds one; __post_init__ may raise ValueError.
        build: Writes the model. Equal parameters must give equal bytes.
    """

    name: str
    version: str
    description: str
    parameters: type[P]
    build: Callable[[P], BuiltModel]


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def _load(point: EntryPoint, where: str) -> Builder[Any]:
    return load_registered(point, Builder, "harness.models.Builder", where)


def load_builders() -> dict[str, Builder[Any]]:
    """All builders that installed packages register, by name, sorted.

    Raises:
        SuiteError: One of them does not import, or is no Builder.
    """
    return {name: _load(_entry_points()[name], f"builder {name!r}") for name in sorted(_entry_points())}


def find_builder(name: str, where: str = "builder") -> Builder[Any]:
    """The builder of that registered name; only its package is imported.

    Args:
        where: The table and key that name it, for error messages.

    Raises:
        SuiteError: No package registers it, it does not import, or it is no Builder.
    """
    known = _entry_points()
    if name not in known:
        raise SuiteError(f"{where}: there is no builder {name!r}{did_you_mean(name, list(known))}")
    return _load(known[name], f"{where} {name!r}")


def check_params(builder: Builder[P], params: Mapping[str, Any], where: str = "params") -> P:
    """Turn a suite's `params` table into the builder's parameters.

    Args:
        where: The table and key of `params`, for error messages: `[models.rdb] params`.

    Raises:
        SuiteError: An unknown key, or a value of the wrong type or out of range (true is no integer).
    """
    fields = {field.name: field for field in dataclasses.fields(builder.parameters)}  # type: ignore[arg-type]
    for key in params:
        if key not in fields:
            hint = did_you_mean(key, list(fields))
            raise SuiteError(f"{where}.{key} is not a parameter of builder {builder.name!r}{hint}")
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in params:
            raise SuiteError(f"{where}.{name} is missing; builder {builder.name!r} needs it")
    adapters = _adapters(builder)
    checked = {key: _check_value(adapters[key], value, f"{where}.{key}") for key, value in params.items()}
    try:
        return builder.parameters(**checked)
    except ValueError as error:
        raise SuiteError(f"{where}: {error}") from None


@cache
def _adapters(builder: Builder[Any]) -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(builder.parameters, include_extras=True)
    return {field.name: TypeAdapter(hints[field.name]) for field in dataclasses.fields(builder.parameters)}


def _check_value(adapter: TypeAdapter[Any], value: object, where: str) -> Any:
    try:
        return adapter.validate_python(value, strict=True)
    except ValidationError as invalid:
        message = invalid.errors(include_url=False)[0]["msg"]
        raise SuiteError(f"{where}: {message[:1].lower()}{message[1:]}, not {str(value)[:60]!r}") from None
