"""Checks of what the tables of a suite refer to, and the sentences that name file, table and key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import BaseModel

from harness.errors import SuiteError
from harness.files import require_readable
from harness.suite.toml_file import shown
from harness.text import did_you_mean

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Value = TypeVar("_Value", bound="DataclassInstance")
_Made = TypeVar("_Made")


@contextmanager
def errors_name(path: Path) -> Iterator[None]:
    """Put the file's name before the sentences of checks, which name table and key."""
    try:
        yield
    except SuiteError as error:
        raise error.of_file(path) from None


class Mistakes:
    """Collects what is wrong with tables that can be checked without each other."""

    def __init__(self) -> None:
        self._sentences: list[str] = []

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Keep the mistake of what is checked in the context."""
        try:
            yield
        except SuiteError as error:
            self._sentences += error.every

    def of_each(self, make: Callable[..., _Made], tables: Iterable[tuple[Any, Any]]) -> tuple[_Made, ...]:
        """What is made of each table and its name or number, without those that are wrong."""
        made: list[_Made] = []
        for name, table in tables:
            with self.collected():
                made.append(make(name, table))
        return tuple(made)

    def refuse(self) -> None:
        """Raise what was collected."""
        if self._sentences:
            raise SuiteError.of_all(self._sentences)


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
        exists = path.is_file()
    except (OSError, ValueError) as error:  # such as a name that is longer than the system takes
        reason = getattr(error, "strerror", None) or error
        raise SuiteError(f"{where}: {shown(name)} cannot be looked up ({reason}); check the path") from None
    if not exists:
        problem = f"there is no file {name} beside the suite; check the path" if name else "the path is empty; add it"
        raise SuiteError(f"{where}: {problem}")
    try:
        require_readable(path)
    except OSError as error:
        why = error.strerror
        raise SuiteError(f"{where}: {name} cannot be read ({why}); check the path and its permissions") from None
    return path
