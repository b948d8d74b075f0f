"""A comment is posted however many rows there are, and says what it leaves out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harness.records.comparison import Comparison, GeometricMean, Row, Verdict
from harness.report.github import render_comment, render_full, render_step_summary
from harness.report.github.limits import STEP_SUMMARY_BYTES
from harness.report.markdown_text import COMMENT_LIMIT
from tests.report.comparison.conftest import make_comparison, make_side, make_timed
from tests.report.github.page import Page, require_ours


def many(verdict: Verdict, count: int, **given: object) -> list[Row]:
    return [
        make_timed(f"some-model-{index:05d}/with-a-variant@local-sync", 2.0, 1.1, verdict, **given)
        for index in range(count)
    ]


def require_postable(text: str) -> None:
    """By code points, UTF-16 units and bytes, whichever GitHub counts, with room for a line of whoever posts it."""
    assert len(text) <= len(text.encode("utf-16-le")) // 2 <= len(text.encode()) <= COMMENT_LIMIT - 500
    require_ours(text)


@pytest.mark.parametrize(
    "rows",
    [
        many("regressed", 10_000, repro=("harness compare a b --filter c",)),
        many("inconclusive", 10_000, reason="the interval is wider than 1 % either way; more would narrow it"),
        many("failed", 10_000, reason="fails at compile: " + "x" * 200, stderr="said\n" * 40),
        many("missing", 300) + many("failed", 10_000),
        many("new", 10_000),
        many("unchanged", 10_000, gate="violated"),
        many("identical", 10_000),
    ],
    ids=["regressed", "inconclusive", "failed", "missing", "new", "violated", "identical"],
)
def test_ten_thousand_rows(rows: Sequence[Row]) -> None:
    means = tuple(GeometricMean(kind="model", name=row.model, ratio=1.1, rows=3) for row in rows)
    text = render_comment(make_comparison(rows, means=means))
    require_postable(text)
    assert "Left out here for length, and in the full report: the rest of long lists" in text
    lost = [row for row in rows if row.verdict in ("failed", "missing")]
    if lost:
        seen = Page(text).unfolded
        assert seen.count("some-model-") > 100
        assert f"{len(lost) if lost[0].verdict == 'failed' else len(lost) - 300:,})" in seen


@pytest.mark.parametrize("character", ["a", "@x", "&", "|", "$", ":a", "語", "😀", "\u202e", "`", "<"])
@pytest.mark.parametrize("verdict", ["regressed", "failed", "inconclusive"])
def test_names_of_ten_thousand_characters(character: str, verdict: Verdict) -> None:
    endless = (character * 10_000)[:10_000] + "."
    side = make_side(endless, endless, run=endless, suite=endless, machine=endless)
    rows = [
        make_timed(f"{endless}{number}", 1.0, 1.2, verdict, reason=endless, change=endless, stderr=endless)
        for number in range(40)
    ]
    text = render_comment(
        make_comparison(
            rows,
            id=endless,
            base=side,
            head=side,
            notes=(endless,) * 50,
            command=("harness", endless),
            settings={endless: endless},
        )
    )
    require_postable(text)


def test_no_more_is_left_out_than_has_to_be() -> None:
    reason = "fails at compile: " + "x" * 200
    sizes = [
        len(render_comment(make_comparison(many("failed", count, reason=reason))).encode())
        for count in range(150, 260, 2)
    ]
    assert 63_500 < max(sizes) <= COMMENT_LIMIT - 500
    assert min(sizes) < 30_000  # where the table of what happened is left out


def test_even_if_nothing_fits_the_verdict_does(monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.report.github import comment

    monkeypatch.setattr(comment, "COMMENT_BYTES", 1_000)
    text = render_comment(make_comparison(many("failed", 1_000)))
    assert len(text) < 1_000
    assert "1,000 failed" in text
    assert "Left out here for length, and in the full report: everything else." in text


@pytest.fixture
def huge() -> Comparison:
    return make_comparison([*many("regressed", 2_000), *many("unchanged", 8_000), *many("failed", 50)])


def test_the_full_report_has_every_row(huge: Comparison) -> None:
    text = render_full(huge)
    assert text.count("| `some-model-") >= 10_050
    assert len(text) > STEP_SUMMARY_BYTES


def test_the_summary_of_a_job_is_cut_with_a_sentence(huge: Comparison) -> None:
    text = render_step_summary(huge)
    assert 300_000 < len(text.encode()) < STEP_SUMMARY_BYTES
    assert "Left out here for length, and in the full report: the rest of long lists" in text
    assert not text.startswith("<!--")


def test_a_summary_has_what_room_another_one_leaves(huge: Comparison, full_comparison: Comparison) -> None:
    assert len(render_step_summary(huge, limit_bytes=100_000).encode()) < 100_000
    assert render_step_summary(full_comparison) == render_full(full_comparison)
