"""The diagnosis for a reader at a terminal."""

from __future__ import annotations

import io
import textwrap

from rich.console import Console
from rich.text import Text

from harness.doctor.examine import LEVELS, TOPICS, Diagnosis, Finding, Level

# A mark and a word each, since colours do not reach everybody, nor every log.
_MARKS: dict[Level, tuple[str, str]] = {
    "ok": ("+", "green"),
    "note": ("i", "cyan"),
    "warning": ("!", "yellow"),
    "missing": ("x", "red"),
}
_TITLES = {
    "toolchain": "Toolchain",
    "devices": "Devices",
    "peers": "Other engines",
    "machine": "Machine",
    "processor": "Processor",
    "memory": "Memory",
    "process": "This process",
    "counters": "Hardware counters",
}
_WORD_COLUMN = 12  # where sentences begin: behind two spaces, the mark and the longest word


def render_terminal(diagnosis: Diagnosis, *, width: int = 80, color: bool = False) -> str:
    """The findings by topic, each with its level as mark and word and with what to do; a summary ends them.

    Args:
        width: Columns of the terminal; only commands, which are to be copied, may be wider.
        color: Whether to add colours, which repeat what marks and words say.
    """
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        legacy_windows=False,
    )
    for topic in TOPICS:
        findings = diagnosis.about(topic)
        if findings:
            console.print(Text(_TITLES[topic], style="bold"))
        for finding in findings:
            _print_finding(finding, console)
        if findings:
            console.print()
    _print_wrapped(Text(), f"{summary(diagnosis)} {conclusion(diagnosis)}", console)
    return out.getvalue()


def summary(diagnosis: Diagnosis) -> str:
    """How many findings there are of each level, as a sentence: `9 ok, 3 notes, 1 warning.`, without those of none."""
    plurals = {"note": "notes", "warning": "warnings"}
    counts = [(diagnosis.count(level), level) for level in LEVELS]
    words = [f"{count} {level if count == 1 else plurals.get(level, level)}" for count, level in counts if count]
    return ", ".join(words) + "."


def conclusion(diagnosis: Diagnosis) -> str:
    """What it comes to, as a sentence."""
    if diagnosis.toolchain is None:
        return "Nothing can be compiled or measured here before the toolchain is there."
    if diagnosis.count("warning"):
        return "Measuring works, but times are noisier than they need be: see the warnings."
    return "Nothing was found that makes times noisy."


def _print_finding(finding: Finding, console: Console) -> None:
    mark, style = _MARKS[finding.level]
    _print_wrapped(Text(f"  {mark} {finding.level}".ljust(_WORD_COLUMN), style=style), finding.what, console)
    if finding.advice is None:
        return
    arrow = Text(" " * _WORD_COLUMN + "-> ")
    _print_wrapped(arrow, finding.advice if finding.command is None else f"{finding.advice}:", console)
    if finding.command is not None:
        # Never wrapped, so that it can be copied.
        console.print(Text(" " * len(arrow) + finding.command, style="bold"), soft_wrap=True)


def _print_wrapped(head: Text, sentence: str, console: Console) -> None:
    """Print a sentence behind its head, further lines below its first word, and no spaces at the ends of lines."""
    width = max(console.width - len(head), 20)
    lines = textwrap.wrap(sentence, width, break_long_words=False, break_on_hyphens=False)
    first, *others = lines or [""]
    console.print(Text.assemble(head, first), soft_wrap=True)
    for line in others:
        console.print(Text(" " * len(head) + line), soft_wrap=True)
