"""Tables of a suite -> dataclasses of installed code: a builder's parameters, a plugin's options.

The dataclass is frozen and keyword-only. Fields are checked strictly against their annotations, so that true is no
integer, and Annotated[int, pydantic.Field(ge=1)] bounds one; a list becomes a tuple where that is asked for. Its
__post_init__ may raise ValueError.
"""

import dataclasses
import json
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import ErrorDetails, PydanticSerializationError, to_jsonable_python

from harness.errors import SuiteError
from harness.text import did_you_mean

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoOptions:
    """The options of a plugin or a peer that has none."""


def check_options(kind: type[_T], values: Mapping[str, Any], *, where: str, owner: str, noun: str) -> _T:
    """A table as its dataclass; errors say `where` (`[models.rdb] params`), `owner` (`builder 'mlp'`) and `noun`."""
    adapter = _adapter_of(kind, where, owner, noun)
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for key in values:
        if key not in names:
            hint = did_you_mean(key, names) if names else "; it has none"
            article = "an" if noun[0] in "aeiou" else "a"
            raise SuiteError(f"{where}.{key} is not {article} {noun} of {owner}{hint}")
    try:
        # As JSON, whose lists may be tuples and whose strings may be dates and members of an Enum.
        return adapter.validate_json(json.dumps(values, default=str), strict=True)
    except ValidationError as invalid:
        raise SuiteError(f"{where}{_sentence(invalid.errors(include_url=False)[0], owner)}") from None


def _sentence(error: ErrorDetails, owner: str) -> str:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"])
    if error["type"] == "missing" and len(error["loc"]) == 1:
        return f"{place} is missing; {owner} needs it"
    if error["type"] == "value_error":
        return f"{place}: {error['ctx']['error']}"
    return f"{place}: {error['msg'][:1].lower()}{error['msg'][1:]}, not {str(error['input'])[:60]!r}"


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
    schema = _adapter_of(kind, owner, owner, "option").json_schema()
    found = []
    for field in dataclasses.fields(kind):
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        required = default is dataclasses.MISSING
        own = {key: value for key, value in schema["properties"][field.name].items() if key not in ("title", "default")}
        if "$ref" in str(own):
            own["$defs"] = schema["$defs"]
        shown = None if required else to_jsonable_python(default)
        found.append(Option(name=field.name, schema=own, required=required, default=shown))
    return tuple(found)


def switches_of(kind: type[Any]) -> tuple[str, ...]:
    """The options of a dataclass that are true or false, in order."""
    return tuple(option.name for option in options_of(kind, kind.__name__) if option.schema.get("type") == "boolean")


_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
    "pattern": "that matches",
}


def _words(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
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


def _adapter_of(kind: type[_T], where: str, owner: str, noun: str) -> TypeAdapter[_T]:
    try:
        if not dataclasses.is_dataclass(kind):
            raise TypeError(f"{kind.__name__} is no dataclass")
        return _adapter(kind)
    except (TypeError, NameError, PydanticUserError) as error:
        text = str(error).splitlines()[0]
        raise SuiteError(
            f"{where}: the {noun}s of {owner} cannot be checked ({text}); ask its package's author"
        ) from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    adapter = TypeAdapter[Any](kind)
    adapter.rebuild(raise_errors=True)
    return adapter
