"""What `harness plugins` shows: names, options with types and defaults, and what is broken."""

import json
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from harness.models.builder import BUILDERS
from harness.peers.peer import PEERS
from harness.plugins import PLUGINS, Plugin
from harness.plugins.options import options_of
from harness.report.command_pages import find_registered, registered_json
from tests.builders import register


class Order(Enum):
    """Two values."""

    ROWS = "rows"
    COLUMNS = "columns"


@dataclass(frozen=True, kw_only=True)
class Options:
    """One of every type."""

    size: Annotated[int, Field(ge=1, le=64)]
    side: Literal["lhs", "rhs"] = "lhs"
    order: Order = Order.ROWS
    tiles: tuple[int, int] = (4, 8)
    weights: dict[str, float] = field(default_factory=dict)
    limit: int | None = None
    anything: Any = None


TILE = Plugin(
    name="tile", version="3", description="Tiles", options=Options, steps=lambda _: (), backends=("llvm-cpu",)
)
SIZE = "integer, at least 1, at most 64"


def test_each_type_in_words() -> None:
    assert {option.name: (option.takes, option.default) for option in options_of(Options, "plugin")} == {
        "size": (SIZE, None),
        "side": ('"lhs" | "rhs"', "lhs"),
        "order": ('"rows" | "columns"', "rows"),
        "tiles": ("list of integer, integer", [4, 8]),
        "weights": ("table of number", {}),
        "limit": ("integer or null", None),
        "anything": ("any value", None),
    }


def test_all_is_there_and_a_package_that_is_broken_is_named_and_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, PLUGINS.group, ("tile", TILE), ("broken", "no_such_package:BROKEN"))
    found = find_registered()
    names = {kind: {row.name for row in found if row.kind == kind} for kind in ("plugins", "builders", "peers")}
    assert names == {"plugins": {"broken", "tile"}, "builders": set(BUILDERS.names), "peers": set(PEERS.names)}
    assert "no_such_package:BROKEN cannot be loaded" in next(row.unavailable for row in found if row.name == "broken")
    document = json.loads(registered_json(find_registered(["tile"])))
    assert (document["schema_version"], document["builders"], document["peers"]) == (1, [], [])
    (tile,) = document["plugins"]
    assert (tile["name"], tile["version"], tile["backends"], tile["unavailable"]) == ("tile", "3", ["llvm-cpu"], "")
    schema = {"type": "integer", "minimum": 1, "maximum": 64}
    assert tile["options"][0] == {"name": "size", "type": SIZE, "required": True, "default": None, "schema": schema}
