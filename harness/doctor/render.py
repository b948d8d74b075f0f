"""The diagnosis for a reader at a terminal, and for programs: a list of sentences, and one JSON document."""

from __future__ import annotations

import dataclasses
import io
import json
import textwrap

from rich.console import Console
from rich.text import Text

from harness import __version__
from harness.doctor.examine import LEVELS, TOPICS, Diagnosis, Finding, Level
from harness.text import plural

SCHEMA_VERSION = 1

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
    """How many findings have each level, such as `9 ok, 3 notes, 1 warning.`; a level without findings is left out."""
    counts = [(diagnosis.count(level), level) for level in LEVELS]
    same = ("ok", "missing")  # words without a plural of their own
    return ", ".join(plural(count, level, level if level in same else "") for count, level in counts if count) + "."


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


def render_json(diagnosis: Diagnosis) -> str:
    """The findings and the facts behind them as one JSON document with `schema_version`; it ends in a line break.

    `toolchain` is null where there is none, `counters.unavailable` null where hardware counters work. The environment
    names no host, no user and no folder, so that the document can be put into an issue.
    """
    document = {
        "schema_version": SCHEMA_VERSION,
        "harness_version": __version__,
        "toolchain": dataclasses.asdict(diagnosis.toolchain) if diagnosis.toolchain else None,
        "extra_toolchains": [dataclasses.asdict(extra) for extra in diagnosis.extra_toolchains],
        "devices": [dataclasses.asdict(probe) for probe in diagnosis.probes],
        "vulkan_drivers": {name: dataclasses.asdict(probe) for name, probe in diagnosis.vulkan_drivers.items()},
        "peers": [dataclasses.asdict(peer) for peer in diagnosis.peers],
        "counters": {"unavailable": diagnosis.counters},
        "environment": diagnosis.environment,
        "findings": [dataclasses.asdict(finding) for finding in diagnosis.findings],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
