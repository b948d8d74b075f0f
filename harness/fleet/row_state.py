"""What an asker knows of a row of a comparison that hosts of a fleet measure, and of the orders that are out for it."""

from __future__ import annotations

import queue
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.fleet.files import Luggage
from harness.fleet.row_orders import RowOrder
from harness.fleet.row_plan import RowNeed
from harness.fleet.state import HostState
from harness.measure import Known
from harness.records.run import Round


class Answer(NamedTuple):
    """What became of an order."""

    ticket: int
    value: Any  # None: the worker that had it has gone
    was_at_it: bool = False  # Whether it then was what the worker measured


@dataclass(kw_only=True, eq=False)
class Row:
    """A row under way."""

    name: str
    need: RowNeed
    hosts: list[str]  # That measure it, in order; one that is lost leaves
    # The order for a host that is here, with what it takes along
    order: Callable[[HostState], tuple[RowOrder, Luggage]]
    on_round: Callable[[Round], None]  # Gets rounds that count
    limit_s: float  # Within which a generation surely ends
    mail: queue.Queue[Answer | None] = field(default_factory=queue.Queue)
    known: dict[str, Mapping[str, Known]] = field(default_factory=dict)  # By host, what its first generation told
    orders: dict[str, tuple[RowOrder, Luggage]] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)  # Why hosts no longer measure it, by name
    deaths: int = 0


class Out(NamedTuple):
    """An order that is out."""

    row: Row
    host: str
    address: str
