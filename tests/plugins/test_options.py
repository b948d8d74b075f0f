"""Tables of a suite that installed code describes by a dataclass: what is taken, and what is said of what is not."""

from __future__ import annotations

import datetime
import enum
import math
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from harness.errors import SuiteError
from harness.plugins.options import as_json, check_options

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
    scale: float = 1.0
    deep: bool = False
    name: str = "x"
    side: Literal["left", "right"] = "left"
    order: Order = Order.ROWS
    tiles: tuple[Positive, ...] = (4, 4)
    pair: tuple[int, int] = (1, 2)
    weights: list[float] = field(default_factory=list)
    limits: dict[str, int] = field(default_factory=dict)
    cache: int | None = None
    since: datetime.date | None = None


def checked(**values: Any) -> Options:
    return check_options(
        Options,
        {"width": 8, **values},
        where="s.toml: [variants.wide] plugins: tile",
        owner="plugin 'tile'",
        noun="option",
    )


def refusal(**values: Any) -> str:
    with pytest.raises(SuiteError) as caught:
        checked(**values)
    return str(caught.value).removeprefix("s.toml: [variants.wide] plugins: tile")


def test_what_is_left_out_has_its_default() -> None:
    assert checked() == Options(width=8)


@pytest.mark.parametrize(
    ("values", "meaning"),
    [
        ({"scale": 2}, {"scale": 2.0}),
        ({"tiles": [1, 2, 3]}, {"tiles": (1, 2, 3)}),
        ({"tiles": []}, {"tiles": ()}),
        ({"pair": [3, 4]}, {"pair": (3, 4)}),
        ({"order": "columns"}, {"order": Order.COLUMNS}),
        ({"cache": 3}, {"cache": 3}),
        ({"since": datetime.date(2026, 11, 21)}, {"since": datetime.date(2026, 11, 21)}),
        ({"name": 'a\n"b" `c` | \u2028'}, {"name": 'a\n"b" `c` | \u2028'}),
    ],
)
def test_values_as_toml_writes_them(values: dict[str, Any], meaning: dict[str, Any]) -> None:
    assert checked(**values) == Options(width=8, **meaning)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"widht": 4}, ".widht is not an option of plugin 'tile'; did you mean \"width\"?"),
        ({"width": 0}, ".width: input should be greater than or equal to 1, not '0'"),
        ({"width": 65}, ".width: input should be less than or equal to 64, not '65'"),
        ({"width": "8"}, ".width: input should be a valid integer, not '8'"),
        ({"width": True}, ".width: input should be a valid integer, not 'True'"),
        ({"width": 8.0}, ".width: input should be a valid integer, not '8.0'"),
        ({"deep": 1}, ".deep: input should be a valid boolean, not '1'"),
        ({"scale": "2"}, ".scale: input should be a valid number, not '2'"),
        ({"scale": True}, ".scale: input should be a valid number, not 'True'"),
        ({"name": 3}, ".name: input should be a valid string, not '3'"),
        ({"side": "up"}, ".side: input should be 'left' or 'right', not 'up'"),
        ({"order": "none"}, ".order: input should be 'rows' or 'columns', not 'none'"),
        ({"tiles": 4}, ".tiles: input should be a valid array, not '4'"),
        ({"tiles": [4, 0]}, ".tiles: input should be greater than or equal to 1, not '[4, 0]'"),
        ({"weights": [1, "2"]}, ".weights: input should be a valid number, not \"[1, '2']\""),
        ({"limits": {"a": 1.5}}, ".limits: input should be a valid integer, not \"{'a': 1.5}\""),
        ({"name": datetime.date(2026, 11, 21)}, ".name: input should be a valid string, not '2026-11-21'"),
        ({"side": LONG}, f".side: input should be 'left' or 'right', not {LONG[:60]!r}"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(values: dict[str, Any], sentence: str) -> None:
    assert refusal(**values) == sentence


def test_what_has_no_default_is_asked_for() -> None:
    with pytest.raises(SuiteError, match=r"^w\.width is missing; plugin 'tile' needs it$"):
        check_options(Options, {}, where="w", owner="plugin 'tile'", noun="option")


def test_where_there_is_nothing_to_choose_the_sentence_says_so() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Nothing:
        """No fields."""

    with pytest.raises(SuiteError, match=r"^w\.x is not a parameter of builder 'b'; it has none$"):
        check_options(Nothing, {"x": 1}, where="w", owner="builder 'b'", noun="parameter")


def test_rules_over_several_values_read_as_errors_of_the_table() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Matmul:
        """A rule over two fields."""

        m: int
        tile: int = 1

        def __post_init__(self) -> None:
            if self.m % self.tile:
                raise ValueError(f"m is {self.m}, which tile ({self.tile}) does not divide; change one of them")

    with pytest.raises(SuiteError, match=r"^w: m is 6, which tile \(4\) does not divide; change one of them$"):
        check_options(Matmul, {"m": 6, "tile": 4}, where="w", owner="builder 'b'", noun="parameter")


@dataclass(frozen=True, kw_only=True)
class Unknowable:
    """A field of a type that no table has."""

    lock: threading.Lock  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize("kind", [Unknowable, int, dict])
def test_a_class_that_cannot_be_checked_by_is_its_authors_to_mend(kind: type) -> None:
    with pytest.raises(SuiteError) as caught:
        check_options(kind, {}, where="w", owner="plugin 'odd'", noun="option")
    assert str(caught.value).startswith("w: the options of plugin 'odd' cannot be checked (")
    assert str(caught.value).endswith("); ask its package's author")
    assert "\n" not in str(caught.value)


def test_as_json_they_identify_a_case_and_go_to_another_process() -> None:
    options = checked(order="columns", tiles=[1, 2], since=datetime.date(2026, 11, 21))
    assert as_json(options) == {
        "width": 8,
        "scale": 1.0,
        "deep": False,
        "name": "x",
        "side": "left",
        "order": "columns",
        "tiles": [1, 2],
        "pair": [1, 2],
        "weights": [],
        "limits": {},
        "cache": None,
        "since": "2026-11-21",
    }


def test_numbers_that_are_none_are_numbers_unless_the_author_says_otherwise() -> None:
    assert math.isnan(as_json(checked(scale=math.nan))["scale"])
    assert as_json(checked(scale=-math.inf))["scale"] == -math.inf

    @dataclass(frozen=True, kw_only=True)
    class Finite:
        """A number that is one."""

        scale: Annotated[float, Field(allow_inf_nan=False)] = 1.0

    with pytest.raises(SuiteError, match=r"^w\.scale: input should be a finite number, not 'nan'$"):
        check_options(Finite, {"scale": math.nan}, where="w", owner="plugin 'p'", noun="option")


def test_what_is_no_json_is_refused() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Anything:
        """A default that cannot be written down."""

        thing: Any = NO_JSON

    with pytest.raises(ValueError, match="Unable to serialize unknown type"):
        as_json(Anything())


@given(
    width=st.integers(1, 64),
    scale=st.floats(allow_nan=False),
    name=st.text(),
    tiles=st.lists(st.integers(1, 2**70)),
    limits=st.dictionaries(st.text(), st.integers(-(2**70), 2**70)),
)
def test_json_says_the_same_options_again(
    width: int, scale: float, name: str, tiles: list[int], limits: dict[str, int]
) -> None:
    options = checked(width=width, scale=scale, name=name, tiles=tiles, limits=limits)
    again = checked(**{key: value for key, value in as_json(options).items() if key != "since"})
    assert again == options
    assert as_json(again) == as_json(options)
