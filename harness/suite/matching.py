"""Shell patterns on case names."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable


def matching(patterns: Iterable[str]) -> re.Pattern[str]:
    """One expression that matches a whole name if any of the patterns does; with no pattern, only the empty name."""
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns))
