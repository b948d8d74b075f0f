"""What a rewrite returns: how many places it matched, and, where it knows, why it left others alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


class Matched(int):
    """A number of places that a rewrite matched.

    The harness asks any number that a rewrite returns for `left_alone`, so a package need not use this class.
    """

    # How many places were not matched, by what they are: `{"convolutions with dynamic sizes": 53}`. The first word is
    # the plural of a noun.
    left_alone: dict[str, int]

    def __new__(cls, places: int, left_alone: Iterable[str] = ()) -> Matched:
        """Count the places that were left alone."""
        matched = super().__new__(cls, places)
        matched.left_alone = dict(Counter(left_alone))
        return matched
