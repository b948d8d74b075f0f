"""Reading one TOML file into a pydantic model, with errors that name file, table and key."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from harness.errors import SuiteError
from harness.files import require_readable, shipped
from harness.suite.schema import FLAG_PATTERN, NAME_PATTERN, OP_PATTERN
from harness.text import did_you_mean, plural

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Model = TypeVar("_Model", bound=BaseModel)
_Value = TypeVar("_Value", bound="DataclassInstance")

_LONGEST_SHOWN = 60
# What a value must be, by the kind of pydantic's error and with its limits.
_NEEDS = {
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {entries}",
    "greater_than": "must be more than {gt:g}",
    "less_than": "must be less than {lt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    NAME_PATTERN: "must start with a letter or digit and hold only letters, digits, '.', '_', '+' and '-'",
    OP_PATTERN: "must be an operation's name, like linalg.*, host:arith.addf or executables:memref.alloc",
    FLAG_PATTERN: "must start with a dash and a letter, like --iree-opt-level=O3",
}


def read_toml(path: Path, model: type[_Model]) -> tuple[_Model, bytes]:
    """Read and validate one file: the validated model, and the file's bytes."""
    content, raw = read_content(path)
    return validated(path, content, model), raw


def read_content(path: Path) -> tuple[dict[str, Any], bytes]:
    """What one TOML file of any form holds, and its bytes."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        # One of the harness's own may not have been written out yet.
        ours = any((shipped(folder) / path.name).is_file() for folder in ("suites", "flagsets"))
        advice = "`harness new examples` writes the one that comes with the harness" if ours else "check the path"
        raise SuiteError(f"{path}: there is no such file; {advice}") from None
    except (OSError, ValueError) as error:  # such as a name with a zero byte
        raise SuiteError(f"{path}: {_unreadable(error)}; check the path and its permissions") from None
    try:
        return tomllib.loads(raw.decode("utf-8-sig")), raw
    except (RecursionError, ValueError) as error:  # also of another encoding, or with thousands of brackets
        raise SuiteError(f"{path}: is not valid TOML in UTF-8: {error}") from None


def _unreadable(error: Exception) -> str:
    return f"cannot be read ({getattr(error, 'strerror', None) or error})"


def validated(path: Path, content: dict[str, Any], model: type[_Model]) -> _Model:
    """What a file holds, in the model's form."""
    try:
        return model.model_validate(content)
    except ValidationError as invalid:
        # A misspelt key is often missing under its right name too: the spelling is the cause.
        details = sorted(invalid.errors(include_url=False), key=lambda detail: detail["type"] != "extra_forbidden")
        more = f" (and {plural(len(details) - 1, 'more error')})" if len(details) > 1 else ""
        raise SuiteError(f"{path}: {_explain(details[0], content, model)}{more}") from None


def _explain(detail: ErrorDetails, content: dict[str, Any], model: type[BaseModel]) -> str:
    is_name = detail["loc"][-1] == "[key]"
    where = _table_and_key(detail["loc"][:-2] if is_name else detail["loc"], content)
    if detail["type"] == "extra_forbidden":
        schema = model.model_json_schema()
        known = {key for table in (schema, *schema["$defs"].values()) for key in table.get("properties", ())}
        hint = did_you_mean(str(detail["loc"][-1]), sorted(known), "; docs/suite-format.md lists the keys")
        return f"{where} is not a known key{hint}"
    if detail["type"] == "missing":
        return f"{where} is missing; add it"
    return f"{where}: {'the name ' if is_name else ''}{shown(detail['input'])} {_need(detail)}"


def _need(detail: ErrorDetails) -> str:
    limits = detail.get("ctx", {})
    if detail["type"] == "literal_error":
        return f"must be one of {limits['expected'].replace(' or ', ', ')}"
    if need := _NEEDS.get(limits.get("pattern", detail["type"])):
        return need.format(**limits, entries=plural(limits.get("min_length", 0), "entry", "entries"))
    return f"is wrong: {detail['msg'][:1].lower()}{detail['msg'][1:]}"


def shown(value: object) -> str:
    """A value as TOML would have it, more or less, and not too long."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _table_and_key(location: Sequence[int | str], content: Any) -> str:
    """A location as the TOML table that it lies in and the key there: `[models.rdb] params`."""
    here, rest, tables = content, list(location), list[str]()
    if len(rest) > 2 and isinstance(rest[1], int):
        return f"[[{rest[0]}]] #{rest[1] + 1} {_dotted(rest[2:])}"
    while len(rest) > 1 and isinstance(here, dict) and isinstance(here.get(rest[0]), dict):
        here = here[rest[0]]
        tables.append(str(rest.pop(0)))
    return f"[{'.'.join(tables)}] {_dotted(rest)}" if tables else _dotted(rest)


def _dotted(location: Sequence[int | str]) -> str:
    key = ""
    for part in location:
        key += f"[{part}]" if isinstance(part, int) else f".{part}" if key else part
    return key


# --- Checks of what a table says ---


@contextmanager
def errors_name(path: Path) -> Iterator[None]:
    """Put the file's name before the sentences of checks, which name table and key."""
    try:
        yield
    except SuiteError as error:
        raise SuiteError(f"{path}: {error}") from None


def value_of(kind: type[_Value], table: BaseModel, **others: Any) -> _Value:
    """A value from the fields that it shares with a table of the TOML file; `others` are its other fields."""
    names = {field.name for field in fields(kind)} & type(table).model_fields.keys() - others.keys()
    values = {name: getattr(table, name) for name in names}
    return kind(**{name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}, **others)


def require_specifier(where: str, text: str) -> None:
    """Refuse a text that is no PEP 440 specifier of releases; `where` names table and key."""
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        raise SuiteError(f"{where}: {shown(text)} is not a version specifier; write it like '>=3.8,<4'") from None


def require_known(where: str, noun: str, names: Iterable[str], known: Collection[str]) -> None:
    """Refuse names that nothing has."""
    for name in names:
        if name not in known:
            hint = did_you_mean(name, list(known)) or "; no flagset_files are given"
            raise SuiteError(f"{where}: there is no {noun} {name!r}{hint}")


def require_once(where: str, names: Sequence[str]) -> None:
    """Refuse a list in which a name is there twice."""
    for name in names:
        if names.count(name) > 1:
            raise SuiteError(f"{where}: {name!r} is there twice; remove one of them")


def refuse(where: str, *mistakes: tuple[bool, str]) -> None:
    """Raise the sentence of the first mistake that was made."""
    for is_made, sentence in mistakes:
        if is_made:
            raise SuiteError(f"{where} {sentence}")


def file_beside(suite: Path, where: str, name: str) -> Path:
    """A file that a suite names by a path relative to itself; refuse what cannot be read."""
    path = suite.parent / name
    try:
        require_readable(path)
    except (FileNotFoundError, IsADirectoryError):
        raise SuiteError(f"{where}: there is no file {shown(name)} beside the suite; check the path") from None
    except (OSError, ValueError) as error:  # such as a name that is longer than the system takes
        raise SuiteError(f"{where}: {shown(name)} {_unreadable(error)}; check the path and its permissions") from None
    return path
