"""What `harness plugins` shows, and the table that closes the run of a list of suites."""

import json
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from harness.errors import ExitCode
from harness.models.builder import BUILDERS
from harness.peers.peer import PEERS
from harness.plugins import PLUGINS, Plugin
from harness.plugins.options import options_of
from harness.report.command_pages import SuiteOutcome, find_registered, outcome_records, outcomes_page, registered_json
from harness.report.run_report import build_report
from harness.report.terminal import to_terminal
from tests.builders import register
from tests.report.builders import make_small_run


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


SUMMARY = replace(build_report(make_small_run()).summary, measured=5, same=0, failed=1, skipped=1, expected_failures=2)
OUTCOMES = (
    SuiteOutcome(suite=Path("a.toml"), status=ExitCode.CASE_FAILED, run=Path("results/1-a"), summary=SUMMARY),
    SuiteOutcome(suite=Path("b.toml"), status=ExitCode.USAGE, note="b.toml: name is missing; add it | twice"),
)


def test_each_suite_has_a_row_and_why_it_was_not_run_stands_below() -> None:
    assert to_terminal(outcomes_page(OUTCOMES)).splitlines() == [
        "Suites",
        "suite   measured  failed  skipped  failed as expected  exit status  run",
        "───────────────────────────────────────────────────────────────────────────────",
        "a.toml         5       1        1                   2            3  results/1-a",
        "b.toml         -       -        -                   -            2  -",
        "",
        "- b.toml: name is missing; add it | twice",
    ]
    failed, refused = outcome_records(OUTCOMES)
    assert (failed["suite"], failed["run"], failed["exit_status"], failed["note"]) == ("a.toml", "results/1-a", 3, None)
    assert failed["summary"]["expected_failures"] == 2
    assert (refused["run"], refused["exit_status"], refused["summary"]) == (None, 2, None)
