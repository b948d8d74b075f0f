"""What is posted: a comparison's or a run's data, read with limits, rendered and drawn here and nowhere else.

The data may come from a job that ran a pull request's code. Nothing of it is text to be posted as it is: the comment
is made from the figures by harness.report.github, which escapes every name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from harness.errors import RunError
from harness.github.commands import report_with_known_commands, with_known_commands
from harness.report.markdown_text import COMMENT_LIMIT, blocks, escape
from harness.store.files import open_plain, read_document
from harness.text import one_line

if TYPE_CHECKING:
    from harness.records.comparison import Comparison
    from harness.report.links import Images, Links
    from harness.report.run_report import Report

# A comparison of 10,000 cases has some 40 MB.
_COMPARISON_BYTES = 128 * 2**20
_RUN_BYTES = 1024 * 2**20

# What is drawn: ratios of a comparison, or of a run its variants beside each other.
Kind = Literal["forest", "variants"]

_BASE_FOLDER = re.compile(r"(?:^|/)base-([0-9a-f]{7,40})/[^/]+$")


def picture_name(kind: Kind, theme: str) -> str:
    """What a picture's file is called wherever it is published: `forest-light.png`."""
    return f"{kind}-{theme}.png"


@dataclass(frozen=True, kw_only=True)
class Material:
    """What a comment is made of.

    Attributes:
        key: 12 digits that stand for the data.
        render: The comment, with pictures or without.
        headline: The whole of it in one sentence.
        alt: Its picture in one sentence, for those who do not see it.
        draw: PNG files by name; none where there is nothing to draw.
        base_digits: The first digits of the commit that was compared with, as the data has it; "" where it was none.
    """

    key: str
    kind: Kind
    render: Callable[[Images | None, Links], str]
    headline: str
    alt: str
    draw: Callable[[], dict[str, bytes]]
    base_digits: str = ""

    def short(self, links: Links) -> str:
        """For a GitHub that takes no comment as long as the usual one: marker, headline, and where the rest is."""
        marker = self.render(None, links).partition("\n")[0]
        where = f"[The whole report]({links.run_url}) is with the run that measured it." if links.run_url else ""
        return blocks(marker[:COMMENT_LIMIT], f"**{escape(self.headline)}**", where) + "\n"


def read_material(path: Path) -> Material:
    """A comparison's folder or its comparison.json, or a run's folder where there was no base.

    Raises:
        RunError: It is neither, is damaged, or is larger than any.
    """
    from harness.store.comparison_directory import COMPARISON_FILE

    folder = path.parent if path.name == COMPARISON_FILE else path
    if (folder / "run.json").is_file() and not (folder / COMPARISON_FILE).exists():
        return _of_run(folder)
    return _of_comparison(folder)


def _of_comparison(folder: Path) -> Material:
    from harness.plots.pictures import alt_text
    from harness.report.comparison_words import finite, headline
    from harness.report.github import render_comment
    from harness.stages.reporting import load_comparison
    from harness.store.comparison_directory import COMPARISON_FILE

    file = folder / COMPARISON_FILE
    if file.is_symlink():
        raise RunError(f"{file}: is a link; give the comparison's own folder")
    if not file.is_file():
        raise RunError(f"{folder}: holds neither {COMPARISON_FILE} nor run.json; give what `harness compare` made")
    content = read_document(file, _COMPARISON_BYTES)
    comparison = with_known_commands(load_comparison(folder))
    return Material(
        key=hashlib.sha256(content).hexdigest()[:12],
        kind="forest",
        render=lambda images, links: render_comment(comparison, images=images, links=links),
        headline=one_line(headline(finite(comparison))),
        alt=alt_text("forest", finite(comparison)),
        draw=lambda: _drawn("forest", comparison),
        base_digits=_base_digits(comparison),
    )


def _base_digits(comparison: Comparison) -> str:
    """Of the folder that scripts/ci/measure.sh compiles the base in: `results/base-9b05f1760b/20260101-000000-net`."""
    found = _BASE_FOLDER.search(comparison.base.label)
    return found[1] if found else ""


def _of_run(folder: Path) -> Material:
    from harness.plots.pictures import alt_text
    from harness.report.github import render_run_comment
    from harness.report.run_report import build_report
    from harness.report.run_words import verdict
    from harness.store.run_directory import load_run

    files = sorted(file for file in folder.iterdir() if not file.is_dir() or file.is_symlink())
    if any(file.is_symlink() for file in files):
        raise RunError(f"{folder}: holds links; give a run's own folder")
    if sum(file.stat().st_size for file in files) > _RUN_BYTES:
        raise RunError(f"{folder}: is larger than {_RUN_BYTES >> 20} MiB; post a run of fewer cases")
    digest = hashlib.sha256()
    for file in files:
        with open_plain(file, follow=False) as stream:
            while part := stream.read(2**20):
                digest.update(part)
    try:
        report: Report = report_with_known_commands(build_report(load_run(folder)))
    except RecursionError:
        raise RunError(f"{folder}: is damaged; take the run from a backup") from None
    return Material(
        key=digest.hexdigest()[:12],
        kind="variants",
        render=lambda images, links: render_run_comment(report, images=images, links=links),
        headline=one_line(verdict(report)),
        alt=alt_text("variants", report),
        draw=lambda: _drawn("variants", report),
    )


def _drawn(kind: Kind, source: Comparison | Report) -> dict[str, bytes]:
    """In both themes; none where there is nothing to draw."""
    from harness.plots.pictures import pictures_of
    from harness.records.comparison import Comparison

    if isinstance(source, Comparison):
        return pictures_of(source, kinds=(kind,))
    return pictures_of(report=source, kinds=(kind,))
