"""Tables of a suite that installed code describes by a dataclass: what is taken, and what is said of what is not."""

from __future__ import annotations

import datetime
import enum
import math
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from harness.errors import SuiteError
from harness.plugins.options import NoOptions, as_json, check_options

Positive = Annotated[int, Field(ge=1)]
NO_JSON = object()
LONG = "a\nb" * 99


class Order(enum.Enum):
    """One of two."""

    ROWS = "rows"
    COLUMNS = "columns"


@dataclass(frozen=True, kw_only=True)
class Options:
    """One of every kind of value."""

    width: Annotated[int, Field(ge=1, le=64)]
    scale: Annotated[float, Field(allow_inf_nan=False)] = 1.0
    deep: bool = False
    name: str = "x"
    side: Literal["left", "right"] = "left"
    order: Order = Order.ROWS
    tiles: tuple[Positive, ...] = (4, 4)
    limits: dict[str, int] = field(default_factory=dict)
    cache: int | None = None
    since: datetime.date | None = None

    def __post_init__(self) -> None:
        if self.name == "odd" and self.width % 2 == 0:
            raise ValueError(f"width is {self.width}, and name is 'odd'; change one of them")


def checked(kind: type[Any] = Options, **values: Any) -> Any:
    return check_options(kind, values, where="w", owner="plugin 'tile'", noun="option")


def refusal(kind: type[Any] = Options, **values: Any) -> str:
    with pytest.raises(SuiteError) as caught:
        checked(kind, **values)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix("w")


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"widht": 4}, ".widht is not an option of plugin 'tile'; did you mean \"width\"?"),
        ({"width": 0}, ".width: input should be greater than or equal to 1, not '0'"),
        ({"width": True}, ".width: input should be a valid integer, not 'True'"),
        ({"scale": math.nan}, ".scale: input should be a finite number, not 'nan'"),
        ({"tiles": [4, 0]}, ".tiles[1]: input should be greater than or equal to 1, not '0'"),
        ({"side": LONG}, f".side: input should be 'left' or 'right', not {LONG[:60]!r}"),
        ({"name": "odd"}, ": width is 8, and name is 'odd'; change one of them"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(values: dict[str, Any], sentence: str) -> None:
    assert refusal(**{"width": 8, **values}) == sentence


def test_what_has_no_default_is_asked_for_and_where_there_is_nothing_to_choose_it_says_so() -> None:
    assert refusal() == ".width is missing; plugin 'tile' needs it"
    assert refusal(NoOptions, x=1) == ".x is not an option of plugin 'tile'; it has none"


@dataclass(frozen=True, kw_only=True)
class Unknowable:
    """A field of a type that no table has."""

    lock: threading.Lock  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize("kind", [Unknowable, int, dict])
def test_a_class_that_cannot_be_checked_by_is_its_authors_to_mend(kind: type) -> None:
    assert refusal(kind).startswith(": the options of plugin 'tile' cannot be checked (")
    assert refusal(kind).endswith("); ask its package's author")


def test_values_are_as_toml_writes_them_and_as_json_identify_a_case() -> None:
    given: dict[str, Any] = {
        "width": 8,
        "order": "columns",
        "tiles": [1, 2],
        "limits": {"a": 1},
        "since": datetime.date(2026, 11, 21),
    }
    defaults = {"scale": 1.0, "deep": False, "name": "x", "side": "left", "cache": None}
    options = checked(**given)
    assert (options.tiles, options.order, options.since) == ((1, 2), Order.COLUMNS, datetime.date(2026, 11, 21))
    assert as_json(options) == {**given, **defaults, "since": "2026-11-21"}


def test_what_is_no_json_is_refused() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Anything:
        """A default that cannot be written down."""

        thing: Any = NO_JSON

    with pytest.raises(ValueError, match="Unable to serialize unknown type"):
        as_json(Anything())
