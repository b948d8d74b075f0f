"""What the two sides of a comparison are called."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.records.comparison import SideFacts
from harness.report.names import compared, given_as
from tests.report.builders import make_side

OLD, NEW = "3.11.0", "3.13.0"


def of_commit(label: str, commit: str) -> SideFacts:
    return make_side(label, NEW, commit=commit, subject="Larger tiles")


@pytest.mark.parametrize(
    ("base", "head", "name"),
    [
        (make_side("results/old", OLD), make_side("results/new", NEW), "IREE 3.13.0 against IREE 3.11.0"),
        (
            make_side("results/old", NEW, toolchains=("3.13.0 (aaaa)",)),
            make_side("results/new", NEW, toolchains=("3.13.0 (bbbb)",)),
            "IREE 3.13.0 (bbbb) against IREE 3.13.0 (aaaa)",
        ),
        (make_side("results/old", NEW), make_side("/home/me/results/new/", NEW), "new against old"),
        (make_side("a/new", NEW), make_side("b/new", NEW), "b/new against a/new"),
        (make_side("", NEW, run="first"), make_side("", NEW, run="second"), "second against first"),
        (make_side("iree==3.13.0", NEW), make_side("results/new", NEW), "new against IREE 3.13.0"),
        (
            of_commit("main", "9b05f1760b12" * 3),
            of_commit("HEAD", "0123456789ab" * 3),
            "commit 0123456789 against commit 9b05f1760b",
        ),
        (make_side("iree==3.13.0", NEW), of_commit("HEAD", "0123456789ab"), "commit 0123456789 against IREE 3.13.0"),
        (
            make_side("baseline", NEW, variants=("stock",)),
            make_side("variants", NEW, variants=("fast", "lean")),
            "fast and lean against stock",
        ),
        (
            make_side("baseline", NEW),
            make_side("variants", NEW, variants=tuple("abcd")),
            "4 variants against the baseline",
        ),
        (make_side("baseline", NEW), make_side("variants", NEW), "variants against baseline"),
    ],
    ids=[
        "releases",
        "builds",
        "folders",
        "one name",
        "ids",
        "release",
        "commits",
        "a release and a commit",
        "variants",
        "many",
        "0.1.0",
    ],
)
def test_a_comparison_is_called_by_what_tells_its_sides_apart(base: SideFacts, head: SideFacts, name: str) -> None:
    assert compared(base, head) == name


def test_a_commit_is_given_with_the_first_line_of_its_message() -> None:
    side = of_commit("HEAD", "0123456789ab")
    assert given_as(side) == "HEAD (Larger tiles)"
    assert given_as(side, whole=True) == "HEAD, commit 0123456789ab (Larger tiles)"
    assert given_as(replace(side, label="0123456789ab", subject=""), whole=True) == "0123456789ab"
    assert given_as(make_side("results/old", OLD), whole=True) == "results/old"
