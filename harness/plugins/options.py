"""Tables of a suite -> dataclasses of installed code: a builder's parameters, a plugin's options.

The dataclass is frozen and keyword-only. Fields are checked strictly against their annotations, so that true is no
integer, and Annotated[int, pydantic.Field(ge=1)] bounds one; a list becomes a tuple where that is asked for. Its
__post_init__ may raise ValueError.
"""

import dataclasses
import json
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError

from harness.errors import SuiteError
from harness.text import did_you_mean

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoOptions:
    """The options of a plugin or a peer that has none."""


def check_options(kind: type[_T], values: Mapping[str, Any], *, where: str, owner: str, noun: str) -> _T:
    """Turn a table into the dataclass that describes it.

    Args:
        where: The table and key, for error messages: `[models.rdb] params`.
        owner: Whose values they are: `builder 'mlp'`.
        noun: What one of them is called: `parameter`.

    Raises:
        SuiteError: An unknown or missing key, a value of the wrong type or out of range, or a class that is none to
            check values by.
    """
    adapters = _adapters_of(kind, where, owner, noun)
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for key in values:
        if key not in fields:
            hint = did_you_mean(key, list(fields)) if fields else "; it has none"
            article = "an" if noun[0] in "aeiou" else "a"
            raise SuiteError(f"{where}.{key} is not {article} {noun} of {owner}{hint}")
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in values:
            raise SuiteError(f"{where}.{name} is missing; {owner} needs it")
    checked = {key: _check_value(adapters[key], value, f"{where}.{key}") for key, value in values.items()}
    try:
        return kind(**checked)
    except ValueError as error:
        raise SuiteError(f"{where}: {error}") from None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Option:
    """One option of a plugin or a peer, or one parameter of a builder."""

    name: str
    schema: Mapping[str, Any]  # What it takes, as JSON Schema
    required: bool  # Whether it has no default
    default: Any = None  # As a value of JSON

    @property
    def takes(self) -> str:
        """What it takes, in words: `integer, at least 1`."""
        return _words(self.schema, self.schema.get("$defs", {}))


def options_of(kind: type[Any], owner: str) -> tuple[Option, ...]:
    """The options that a dataclass describes, in order."""
    adapters = _adapters_of(kind, owner, owner, "option")
    found = []
    for field in dataclasses.fields(kind):
        adapter, default = adapters[field.name], field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        required = default is dataclasses.MISSING
        shown = None if required else adapter.dump_python(default, mode="json")
        found.append(Option(name=field.name, schema=adapter.json_schema(), required=required, default=shown))
    return tuple(found)


def switches_of(kind: type[Any]) -> tuple[str, ...]:
    """The options of a dataclass that are true or false, in order."""
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return tuple(field.name for field in fields if field.type in (bool, "bool") or isinstance(field.default, bool))


_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
    "pattern": "that matches",
}


def _words(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """JSON Schema as a phrase."""
    if "$ref" in schema:
        return _words(definitions.get(str(schema["$ref"]).rpartition("/")[2], {}), definitions)
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return " or ".join(_words(choice, definitions) for choice in schema["anyOf"])
    kind = str(schema.get("type", "any value"))
    if kind == "array" and "prefixItems" in schema:
        return f"list of {', '.join(_words(item, definitions) for item in schema['prefixItems'])}"
    if kind == "array":
        return f"list of {_words(schema.get('items', {}), definitions)}"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"table of {_words(values, definitions)}" if isinstance(values, Mapping) else "table"
    bounds = [f"{words} {schema[key]}" for key, words in _BOUNDS.items() if key in schema]
    return ", ".join([kind, *bounds])


def as_json(options: Any) -> dict[str, Any]:
    """Checked options as values of JSON, as they identify what is done with them and go to other processes."""
    try:
        values: dict[str, Any] = TypeAdapter(type(options)).dump_python(options, mode="json")
    except PydanticSerializationError as error:
        raise ValueError(str(error)) from None
    return values


def _adapters_of(kind: Any, where: str, owner: str, noun: str) -> dict[str, TypeAdapter[Any]]:
    try:
        return _adapters(kind)
    except (TypeError, NameError, PydanticUserError) as error:
        text = str(error).splitlines()[0]
        raise SuiteError(
            f"{where}: the {noun}s of {owner} cannot be checked ({text}); ask its package's author"
        ) from None


@cache
def _adapters(kind: Any) -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: TypeAdapter(hints[field.name]) for field in dataclasses.fields(kind)}


def _check_value(adapter: TypeAdapter[Any], value: object, where: str) -> Any:
    """The value, checked as JSON, whose lists may be tuples and whose strings may be members of an Enum."""
    try:
        try:
            text = json.dumps(value)
        except TypeError:  # a date, which TOML has, and JSON has not
            return adapter.validate_python(value, strict=True)
        return adapter.validate_json(text, strict=True)
    except ValidationError as invalid:
        error = invalid.errors(include_url=False)[0]
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"])
        message = f"{error['msg'][:1].lower()}{error['msg'][1:]}, not {str(error['input'])[:60]!r}"
        raise SuiteError(f"{where}{place}: {message}") from None
