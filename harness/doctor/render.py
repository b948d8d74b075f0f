"""The diagnosis for a reader, as a page, and for programs, as one JSON document."""

from dataclasses import asdict

from harness import __version__
from harness.doctor.examine import TOPICS, Diagnosis, Level
from harness.report.data import to_json
from harness.report.page import Code, Heading, Page, Paragraph, Part, Tone
from harness.text import plural
from harness.toolchain import Toolchain

# A mark and a word each, since colours do not reach everybody, nor every log.
_MARKS: dict[Level, tuple[str, Tone]] = {
    "ok": ("+", "good"),
    "note": ("i", "new"),
    "warning": ("!", "open"),
    "missing": ("x", "bad"),
}
_UNASKED = "Devices that nobody asked for are notes; `harness doctor SUITE` asks for those of a suite."


def diagnosis_page(diagnosis: Diagnosis) -> Page:
    """The findings by topic, each with its level as mark and word and with what to do; a summary ends them."""
    parts: list[Part] = []
    for topic, title in TOPICS.items():
        findings = diagnosis.findings[topic]
        if findings:
            parts.append(Heading(title))
        for finding in findings:
            mark, tone = _MARKS[finding.level]
            parts.append(Paragraph(f"{mark} {finding.level}: {finding.what}", tone))
            if finding.advice:
                parts.append(Paragraph(f"-> {finding.advice}{':' if finding.command else ''}"))
            if finding.command:
                parts.append(Code(finding.command, "sh"))
    counts: list[tuple[int, Level]] = [(diagnosis.count(level), level) for level in _MARKS]
    same = ("ok", "missing")  # words without a plural of their own
    found = ", ".join(plural(count, level, level if level in same else "") for count, level in counts if count)
    if isinstance(diagnosis.toolchain, str):
        conclusion = "Nothing can be compiled or measured here before the toolchain is there."
    elif diagnosis.count("warning"):
        conclusion = "Measuring works, but times are noisier than they need be: see the warnings."
    else:
        conclusion = "Nothing was found that makes times noisy."
    parts += [Heading("Summary"), Paragraph(f"{found}. {conclusion}")]
    return Page(parts=parts, notes=[_UNASKED] if diagnosis.unasked else [])


def render_json(diagnosis: Diagnosis) -> str:
    """The findings and the facts behind them as one JSON document with `schema_version`."""
    toolchain = diagnosis.toolchain
    return to_json(
        {
            "harness_version": __version__,
            "toolchain": {
                "version": toolchain.version,
                "revision": toolchain.revision,
                "compiler_sha256": toolchain.compiler_sha256,
            }
            if isinstance(toolchain, Toolchain)
            else None,
            "extra_toolchains": [
                {"version": extra.version, "disk_bytes": extra.disk_bytes} for extra in diagnosis.environments
            ],
            "devices": [asdict(probe) for probe in diagnosis.probes],
            "vulkan_drivers": {name: asdict(probe) for name, probe in diagnosis.vulkan_drivers.items()},
            "peers": [asdict(peer) for peer in diagnosis.peers],
            "counters": {"unavailable": diagnosis.counters},
            "environment": diagnosis.environment,
            "findings": [
                {"topic": topic, **asdict(finding)} for topic, found in diagnosis.findings.items() for finding in found
            ],
        }
    )
