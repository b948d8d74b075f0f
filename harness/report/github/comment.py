"""Comparison -> the comment on a pull request.

From top to bottom: the verdict, what to do, figures at a glance, what failed, violated gates, a picture, the largest
changes; then, folded away, what is not decided and what did not change; how far to trust it, how it was measured, the
commands that repeat it. The lists are those of IREE's old comments; verdict, advice and the table below them come as
rustc-perf's do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.records.comparison import Comparison
from harness.report.comparison.finite import finite
from harness.report.comparison.form import Form, Part, fitted, size_bytes
from harness.report.comparison.markdown_parts import notes, quotation, sides, warnings
from harness.report.comparison.steps import full_report_command
from harness.report.github.elsewhere import as_read_elsewhere
from harness.report.github.limits import COMMENT_BYTES, LEVELS_OF_A_COMMENT
from harness.report.github.links import commit_link, link, more_information, web_address
from harness.report.github.parts import parts_of
from harness.report.github.values import Images, Links
from harness.report.github.verdict import advice, verdict_line
from harness.report.markdown_text import blocks, details, marker, name

_SHORT = Form(full=False)
# Of a command that is put into a sentence, what it takes in Markdown.
_LONGEST_COMMAND_BYTES = 2_000
# More of them than these stand between the verdict and the figures.
_NOTES_UNFOLDED = 2
_CUT = ("the rest of long lists",)


def render_comment(comparison: Comparison, *, images: Images | None = None, links: Links | None = None) -> str:
    """A comment that GitHub takes, however many rows there are and whatever texts are in them.

    Args:
        images: Pictures that are published elsewhere; without any, the largest changes are drawn in characters.
        links: Where more is to be read.
    """
    return lay_out(
        comparison,
        top=marker(_SHORT.cut(comparison.head.suite), "comparison"),
        images=images or Images(),
        links=links or Links(),
        limit_bytes=COMMENT_BYTES,
        levels=LEVELS_OF_A_COMMENT,
    )


def lay_out(
    comparison: Comparison, *, top: str, images: Images, links: Links, limit_bytes: int, levels: Sequence[int]
) -> str:
    """The page, with as much of it as there is room for.

    Args:
        top: What stands above the title.
        levels: How many rows of each list are folded away, from the most that there may be to the fewest.
    """
    known = as_read_elsewhere(finite(comparison))
    head = _head(known, top, links)

    def page(texts: Sequence[str], shortened: Sequence[str]) -> str:
        return blocks(head, *texts, _foot(known, links, shortened)) + "\n"

    parts: list[Part] = []
    for level in levels:
        parts = parts_of(known, images, Form(full=False, folded=level))
        text = page([part.texts[0] for part in parts], () if level == levels[0] else _CUT)
        if size_bytes(text) <= limit_bytes:
            return text
    text = fitted(parts, lambda texts, shortened: page(texts, (*_CUT, *shortened)), limit_bytes=limit_bytes)
    if size_bytes(text) <= limit_bytes:
        return text
    return blocks(top, _title(known), verdict_line(known), _foot(known, links, ("everything else",))) + "\n"


def _title(comparison: Comparison) -> str:
    return f"## Abbreviated Benchmark Summary of {_SHORT.name(comparison.head.suite)}"


def _head(comparison: Comparison, top: str, links: Links) -> str:
    head_commit = commit_link(links.head_commit_url)
    head = f"commit {head_commit}" if head_commit else _SHORT.name(comparison.head.label)
    base = commit_link(links.base_commit_url) or _SHORT.name(comparison.base.label)
    return blocks(
        top,
        _title(comparison),
        verdict_line(comparison),
        f"@ {head} (vs. base {base}): {sides(comparison, _SHORT)}",
        advice(comparison),
        _notes(comparison),
    )


def _notes(comparison: Comparison) -> str:
    """Warnings at once; of other notes, those that are too many to be read at once are folded away."""
    if len(comparison.notes) <= _NOTES_UNFOLDED:
        return notes(comparison, _SHORT)
    folded = notes(replace(comparison, mode="remeasured"), _SHORT)  # which has no warning of its own
    summary = f"Notes ({len(comparison.notes):,})"
    return blocks(quotation(warnings(comparison), _SHORT), details(summary, folded))


def _foot(comparison: Comparison, links: Links, shortened: Sequence[str]) -> str:
    """What is left out, and where everything is."""
    said = []
    if shortened:
        report = link("the full report", links.artifact_url)
        said.append(f"Left out here for length, and in {report}: {', '.join(dict.fromkeys(shortened))}.")
    command = name(full_report_command(comparison))
    if command and size_bytes(command) <= _LONGEST_COMMAND_BYTES and not web_address(links.artifact_url):
        where = " where it was measured" if comparison.id else ""
        said.append(f"The full report, with every row and setting, is printed{where} by {command}")
    return blocks(" ".join(said), more_information(links))
