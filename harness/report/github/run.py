"""Run -> a comment where there is nothing to compare it with: its variants against their baseline."""

from __future__ import annotations

from collections.abc import Sequence

from harness.compare.sides import selfcheck_of
from harness.errors import ExitCode
from harness.report.comparison.form import Form, Part, fitted, size_bytes
from harness.report.comparison.markdown_parts import shortened_step
from harness.report.comparison.markdown_rows import names_by_fate
from harness.report.github.cut import cut_texts
from harness.report.github.elsewhere import selfcheck_elsewhere
from harness.report.github.limits import COMMENT_BYTES, STEP_SUMMARY_BYTES
from harness.report.github.links import commit_link, link, more_information, web_address
from harness.report.github.pictures import pictures
from harness.report.github.summary import whole_or_shorter
from harness.report.github.values import Images, Links
from harness.report.machine import machine_line
from harness.report.markdown_changes import compile_changes, latency_changes
from harness.report.markdown_comparison import comparison_table
from harness.report.markdown_text import blocks, details, escape, marker, name, paragraph, what_next
from harness.report.outcome import exit_code
from harness.report.run_markdown import failures, folded_cases, render_markdown, reproduce, results
from harness.report.values import Report
from harness.report.words import correctness, next_steps, run_line, verdict


def render_run_comment(report: Report, *, images: Images | None = None, links: Links | None = None) -> str:
    """A comment that GitHub takes, however many cases there are and whatever texts are in them.

    Args:
        images: Pictures that are published elsewhere.
        links: Where more is to be read.
    """
    known = cut_texts(report)
    return _lay_out(known, marker(known.facts.suite_name), images or Images(), links or Links(), COMMENT_BYTES)


def render_run_full(report: Report) -> str:
    """Every case, every metric and the environment; of any length, for a file."""
    return render_markdown(report, full=True)


def render_run_step_summary(
    report: Report,
    *,
    images: Images | None = None,
    links: Links | None = None,
    limit_bytes: int = STEP_SUMMARY_BYTES,
) -> str:
    """What `$GITHUB_STEP_SUMMARY` takes: the full report where there is room for it, else as much as there is.

    Args:
        limit_bytes: What the step has left; it may have written a summary before.
    """

    def shorter(shown: Images, most_bytes: int) -> str:
        return _lay_out(cut_texts(report), "", shown, links or Links(), most_bytes)

    return whole_or_shorter(render_run_full(report), images, shorter, limit_bytes)


def _lay_out(report: Report, top: str, images: Images, links: Links, limit_bytes: int) -> str:
    head = _head(report, top, links)

    def page(texts: Sequence[str], shortened: Sequence[str]) -> str:
        return blocks(head, *texts, _foot(report, links, shortened)) + "\n"

    text = fitted(_parts(report, images), page, limit_bytes=limit_bytes)
    if size_bytes(text) <= limit_bytes:
        return text
    return blocks(top, _title(report), _verdict_line(report), _foot(report, links, ("everything else",))) + "\n"


def _title(report: Report) -> str:
    return f"## Abbreviated Benchmark Summary of {name(report.facts.suite)}"


def _verdict_line(report: Report) -> str:
    attention = "" if exit_code(report.summary) is ExitCode.OK else "🚨 Needs attention: "
    return f"**{attention}{escape(verdict(report))}**"


def _head(report: Report, top: str, links: Links) -> str:
    facts = report.facts
    steps = [shortened_step(step) for step in next_steps(report)]
    commit = commit_link(links.head_commit_url)
    return blocks(
        top,
        _title(report),
        _verdict_line(report),
        what_next(steps) or "No action needed.",
        f"@ {f'commit {commit}, ' if commit else ''}run {name(facts.id)} of {escape(facts.started)}, with no base to "
        f"compare with: {escape(run_line(facts, report.sections))}",
        "\n>\n".join(f"> {paragraph(note)}" for note in report.notes[:8]),
    )


def _parts(report: Report, images: Images) -> list[Part]:
    """The parts in order; where room is short, those of the highest rank are shortened first."""
    lost = {fate: [row.case for row in report.rows() if row.status == fate] for fate in ("failed", "missing")}
    return [
        Part(
            what="what happened to each failed case",
            texts=(failures(report), names_by_fate(lost, Form(full=False))),
            ranks=(5,),
        ),
        Part(what="the pictures", texts=(pictures(images, folded=False), ""), ranks=(1,)),
        Part(
            what="variants side by side",
            texts=(blocks(*(comparison_table(group, report, full=False) for group in report.comparisons)), ""),
            ranks=(6,),
        ),
        Part(what="changed latencies", texts=(latency_changes(report, full=False), ""), ranks=(2,)),
        Part(what="compilation metrics", texts=(_compiles(report), ""), ranks=(4,)),
        Part(what="the table of each model and device", texts=(results(report, full=False), ""), ranks=(7,)),
        Part(
            what="expected failures and skipped cases",
            texts=(
                blocks(
                    folded_cases("Expected Failures", report, "expected failure"),
                    folded_cases("Skipped Cases", report, "skipped"),
                ),
                "",
            ),
            ranks=(8,),
        ),
        Part(texts=("\n".join(f"- {escape(line)}" for line in (correctness(report), _trust(report)) if line),)),
        Part(what="the commands", texts=(reproduce(report), ""), ranks=(9,)),
    ]


def _trust(report: Report) -> str:
    """How often verdicts on the run's machine were wrong when that was last checked; "" where it never was."""
    selfcheck = selfcheck_of(report.facts.environment)
    return "" if selfcheck is None else machine_line(selfcheck_elsewhere(selfcheck))


def _compiles(report: Report) -> str:
    listed = compile_changes(report, full=False)
    return details("Compilation metrics against the baseline variant", listed) if listed else ""


def _foot(report: Report, links: Links, shortened: Sequence[str]) -> str:
    """What is left out, and where everything is."""
    left_out = f"Left out here for length: {', '.join(shortened)}." if shortened else ""
    if web_address(links.artifact_url):
        left_out = f"{left_out} {link('The full report', links.artifact_url)} has it." if shortened else ""
        return blocks(left_out, more_information(links))
    command = name(f"harness report results/{report.facts.id} --format markdown --full")
    full = f"The full report, with every case and the environment, where it was measured: {command}"
    return blocks(f"{left_out} {full}".strip(), more_information(links))
