"""Which number of threads a case is held against."""

from __future__ import annotations

from typing import Any

import pytest

from harness.roofline import devices
from harness.roofline.devices import peak_threads
from tests.report.made import make_case


@pytest.mark.parametrize(
    ("given", "threads"),
    [
        ({"uri": "local-sync"}, 1),
        ({"uri": "local-task", "pin": True}, 1),
        ({"uri": "local-task", "pin": False, "threads": 3}, 3),
        ({"uri": "local-task", "pin": False, "threads": 9999}, 4),
        ({"uri": "local-task", "pin": False}, 4),
        ({"uri": "local-sync", "more_uris": ("local-sync",), "pin": False}, 1),
        ({"uri": "local-sync", "more_uris": ("local-task",), "pin": False, "threads": 1}, 4),
        ({"uri": "vulkan://0"}, None),
        ({"uri": "local-sync", "more_uris": ("vulkan",)}, None),
    ],
)
def test_the_peak_of_a_device(given: dict[str, Any], threads: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here with four cores."""
    monkeypatch.setattr(devices, "usable_cores", lambda: 4)
    assert peak_threads(make_case("mm", "stock", **given)) == threads
