"""What the two sides of a comparison are called."""

from __future__ import annotations

import pytest

from harness.records.comparison import SideFacts
from harness.report.names import commit_digits, compared
from tests.report.builders import make_side

OLD, NEW = "3.11.0", "3.13.0"


def of_commit(side: str, commit: str) -> SideFacts:
    return make_side(f"results/{side}-{commit}/20260101-000000-net", NEW)


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
            of_commit("base", "9b05f1760b12"),
            of_commit("head", "0123456789ab"),
            "commit 0123456789 against commit 9b05f1760b",
        ),
        (make_side("9b05f17", OLD), make_side("0123456", NEW), "commit 0123456 against commit 9b05f17"),
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
        "hashes",
        "variants",
        "many",
        "0.1.0",
    ],
)
def test_a_comparison_is_called_by_what_tells_its_sides_apart(base: SideFacts, head: SideFacts, name: str) -> None:
    assert compared(base, head) == name


def test_a_commit_is_that_of_a_folder_of_the_pull_request_job() -> None:
    labels = ("results/base-9b05f1760b/20260101-000000-net", "head-9b05f1760b/x/", "9b05f1760b", "results/9b05f1760b")
    assert list(map(commit_digits, labels)) == ["9b05f1760b"] * 3 + [""]
