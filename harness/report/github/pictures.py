"""Pictures in a comment, each in a version for GitHub's light theme and one for its dark theme."""

from __future__ import annotations

import html

from harness.report.github.links import web_address
from harness.report.github.values import Image, Images
from harness.report.markdown_text import blocks, details
from harness.text import one_line

# Of an alternative text, characters, and of a comment, pictures.
_LONGEST_ALT = 600
_MOST = 12


def pictures(images: Images, *, folded: bool) -> str:
    """All pictures; the first is there at once unless `folded`, the others behind their titles."""
    drawn = [(image, _picture(image)) for image in images.entries[:_MOST]]
    shown = [(image, text) for image, text in drawn if text]
    parts = [
        details(image.title[:_LONGEST_ALT], text) if folded or index else text
        for index, (image, text) in enumerate(shown)
    ]
    return blocks(*parts)


def _picture(image: Image) -> str:
    """As GitHub's "Specifying the theme an image is shown to" has it; "" without an address."""
    light, dark = web_address(image.light_url), web_address(image.dark_url)
    if not light:
        return ""
    alt = html.escape(one_line(image.alt)[:_LONGEST_ALT])
    source = f'<source media="(prefers-color-scheme: dark)" srcset="{dark}">' if dark else ""
    return f'<p><picture>{source}<img alt="{alt}" src="{light}"></picture></p>'
