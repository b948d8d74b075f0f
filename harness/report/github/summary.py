"""What the summary of a job holds."""

from __future__ import annotations

from collections.abc import Callable

from harness.report.comparison.form import size_bytes
from harness.report.github.values import Images


def whole_or_shorter(whole: str, images: Images | None, shorter: Callable[[Images, int], str], limit_bytes: int) -> str:
    """The full report where there is room for it and nothing to be shown beside it, else as much as there is.

    Args:
        shorter: A page with these pictures, of at most so many bytes.
        limit_bytes: The page stays below.
    """
    if size_bytes(whole) < limit_bytes and not (images and images.entries):
        return whole
    return shorter(images or Images(), limit_bytes - 1)
