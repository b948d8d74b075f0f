"""Pictures in a comment, each in a version for GitHub's light theme and one for its dark theme."""

from __future__ import annotations

from harness.report.github.values import Images
from harness.report.markdown_text import blocks, details, picture

# Of an alternative text, characters, and of a comment, pictures.
_LONGEST_ALT = 600
_MOST = 12


def pictures(images: Images, *, folded: bool) -> str:
    """All pictures; the first is there at once unless `folded`, the others behind their titles."""
    drawn = [(image, picture(image.alt, image.light_url, image.dark_url)) for image in images.entries[:_MOST]]
    shown = [(image, text) for image, text in drawn if text]
    parts = [
        details(image.title[:_LONGEST_ALT], text) if folded or index else text
        for index, (image, text) in enumerate(shown)
    ]
    return blocks(*parts)
