"""Phrases that sentences share."""

from __future__ import annotations

import pytest

from harness.explain.phrases import bytes_text, enumerated, on, time_text


@pytest.mark.parametrize(
    ("words", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_enumerations(words: list[str], text: str) -> None:
    assert enumerated(words) == text


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [
        (733.4e6, "733 ms"),
        (-183e6, "183 ms"),
        (20_105.0, "20.1 µs"),
        (1.234e9, "1.23 s"),
        (1.5e12, "1,500 s"),
        (99.96, "100.0 ns"),
        (0.25, "0.25 ns"),
        (0.0, "0.00 ns"),
    ],
)
def test_times(time_ns: float, text: str) -> None:
    assert time_text(time_ns) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 bytes"), (10_239, "10,239 bytes"), (20_000, "19.5 KiB"), (19_796_992, "18.9 MiB"), (3 << 30, "3.00 GiB")],
)
def test_bytes(number: int, text: str) -> None:
    assert bytes_text(number) == text


def test_what_is_on_which() -> None:
    assert on(("a", "b"), "13", "1") == "13 on a, 1 on b"
