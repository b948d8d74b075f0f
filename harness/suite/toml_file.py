"""Reading one TOML file into a pydantic model, with errors that name file, table and key."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from harness.errors import SuiteError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_Model = TypeVar("_Model", bound=BaseModel)


def did_you_mean(word: str, known: Sequence[str], otherwise: str | None = None) -> str:
    """`; did you mean "x"?` when a known word is close, else `otherwise`, else `; known: a, b, c`."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f'; did you mean "{close[0]}"?'
    if otherwise is not None:
        return otherwise
    return f"; known: {', '.join(sorted(known))}" if known else ""


def read_toml(path: Path, model: type[_Model]) -> tuple[_Model, bytes]:
    """Read and validate one file.

    Returns:
        The validated model and the file's bytes.

    Raises:
        SuiteError: The file is missing, unreadable, no TOML, or not of the model's form.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise SuiteError(f"{path}: there is no such file; check the path") from None
    except OSError as error:
        raise SuiteError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None
    try:
        content = tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise SuiteError(f"{path}: is not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise SuiteError(f"{path}: is not valid TOML: {error}") from None
    try:
        return model.model_validate(content), raw
    except ValidationError as invalid:
        raise SuiteError(f"{path}: {_sentence(invalid, content, model)}") from None


def _sentence(invalid: ValidationError, content: dict[str, Any], model: type[BaseModel]) -> str:
    details = invalid.errors(include_url=False)
    more = f" (and {len(details) - 1} more like it)" if len(details) > 1 else ""
    return _explain(details[0], content, model) + more


def _explain(detail: ErrorDetails, content: dict[str, Any], model: type[BaseModel]) -> str:
    location = [part for part in detail["loc"] if part != "[key]"]
    table, key = _table_and_key(location, content)
    where = f"{table} {key}".strip()
    if detail["type"] == "extra_forbidden":
        return f"{where} is not a known key{did_you_mean(str(location[-1]), _known_keys(location[:-1], model))}"
    if detail["type"] == "missing":
        return f"{where} is missing; add it"
    if detail["type"] == "string_pattern_mismatch":
        wanted = str(detail.get("ctx", {}).get("pattern"))
        need = (
            "must start with a dash, like --iree-opt-level=O3"
            if wanted.startswith("^--?")
            else ("may hold letters, digits, '.', '_', '+' and '-' only, and starts with a letter or digit")
        )
        return f"{where}: {str(detail['input'])[:60]!r} {need}"
    message = detail["msg"][:1].lower() + detail["msg"][1:]
    return f"{where}: {message}, not {str(detail['input'])[:60]!r}"


def _table_and_key(location: Sequence[int | str], content: dict[str, Any]) -> tuple[str, str]:
    """Split a location into the TOML table it lies in and the key there: ("[models.rdb]", "params")."""
    tables: list[str] = []
    here: Any = content
    rest = list(location)
    while len(rest) > 1 and isinstance(here, dict) and isinstance(here.get(rest[0]), dict):
        here = here[rest[0]]
        tables.append(str(rest.pop(0)))
    key = ""
    for part in rest:
        key += f"[{part}]" if isinstance(part, int) else f".{part}" if key else str(part)
    return (f"[{'.'.join(tables)}]" if tables else ""), key


def _known_keys(location: Sequence[int | str], model: type[BaseModel]) -> list[str]:
    """The keys of the table at a location, found by walking the model's JSON Schema."""
    schema = model.model_json_schema()
    here: dict[str, Any] = schema
    for part in location:
        here = _resolve(here, schema)
        if isinstance(part, int):
            here = here.get("items", {})
        elif part in here.get("properties", {}):
            here = here["properties"][part]
        else:
            here = here.get("additionalProperties") or next(iter(here.get("patternProperties", {}).values()), {})
    return list(_resolve(here, schema).get("properties", {}))


def _resolve(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].rsplit("/", 1)[-1]]
    return node
