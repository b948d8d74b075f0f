"""Which commits a bisect searches: those of builds in a folder, or of wheels that CI kept."""

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from harness.errors import UsageError
from harness.records.bisection import CommitPoint
from harness.stages import bisect_commits
from harness.stages.bisect_commits import with_commits
from harness.stages.options import BisectOptions
from tests.builders import commit, git


@pytest.fixture
def shas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Six commits of the checkout `iree`, the third of which merges a seventh."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bisect_commits, "revision_of", lambda place: (place / "stated").read_text())
    git(tmp_path, "init", "--quiet", "iree")
    checkout = Path("iree")
    found = [commit(checkout, f"Change {number}") for number in range(2)]
    git(checkout, "checkout", "--quiet", "-b", "side")
    side = commit(checkout, "Aside")
    git(checkout, "checkout", "--quiet", "main")
    git(checkout, "merge", "--quiet", "--no-ff", "--message", "Change 2", "side")
    found += [git(checkout, "rev-parse", "HEAD"), *(commit(checkout, f"Change {number}") for number in range(3, 6))]
    return [*found, side]


def built(*names: str, works: bool = True, stated: str = "") -> None:
    """Builds with these names, in which the compiler states this, if there is one."""
    for folder in (Path("builds", name) for name in names):
        (folder / "tools").mkdir(parents=True)
        (folder / "stated").write_text(stated)
        if works:
            (folder / "tools" / "iree-compile").touch()


def searched(
    said: list[str] | None = None, **options: Any
) -> tuple[list[str | None], tuple[CommitPoint, ...], tuple[str, ...]]:
    """The names of the ends, the commits between them, and what is searched."""
    asked = BisectOptions(over="commits", **{"builds": Path("builds"), "repo": Path("iree"), **options})
    found, points, names = with_commits(asked, (said if said is not None else []).append)
    return [found.good, found.bad, found.fixed], points, names


def test_builds_stand_in_the_order_of_the_checkout(shas: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    others = [f"b{shas[1][:7]}", f"of-{shas[0]}", f"of-{shas[6]}", "else"]
    built(f"v3-12-g{shas[4][:9]}", *others)
    built(f"x_{shas[1][:7].upper()}", "logs", works=False)
    built("20261128", stated=shas[5])
    said: list[str] = []
    ends, points, names = searched(said, good="main~4", bad="main")
    assert ends == [shas[1][:10], shas[5][:10], None]
    assert [(point.revision, point.subject, point.unbuilt) for point in points] == [
        (shas[1], "Change 1", 0),
        (shas[4], "Change 4", 2),
        (shas[5], "Change 5", 0),
    ]
    assert Path(points[0].toolchain).name == f"x_{shas[1][:7].upper()}", "a build that failed is one too"
    assert said == [
        f"Left out, since neither name nor compiler says a commit between the ends: {', '.join(sorted(others))}"
    ]
    assert names == tuple(point.name for point in points)
    for skip in (shas[4][:8], "main~1"):
        _, same, fewer = searched(good="main~4", bad="main", skip=(skip, "main~2"))
        assert (same, fewer) == (points, (names[0], names[2])), "main~2 has no build"
    ends, _, _ = searched(said, good="main~4", bad="main~2", fixed="main")
    assert ends == [shas[1][:10], shas[4][:10], shas[5][:10]]
    assert said[-1] == f"--bad: {shas[3][:10]} has no build, and {shas[4][:10]} takes its place"
    monkeypatch.chdir("iree")
    assert searched(good="main~4", bad="main", builds=Path("../builds"), repo=None)[0][0] == shas[1][:10]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"good": "v1"}, "v1: this repository has no such commit; `git fetch origin`"),
        ({"good": "main", "bad": "main~1"}, "main~1 does not follow main in /"),
        ({"good": "main~1"}, "no commit from main~1 to main has a build; give other ends, or another --builds"),
        (
            {"good": "main~2"},
            "--bad: {5} has no build; build it, or give {3} or {3}",
        ),
        ({"good": "main~4", "bad": "main~2"}, "--good: {1} has no build; build it, or give {3} or {3}"),
        ({"bad": "main~4", "fixed": "main~2"}, "--bad: {1} has no build; build it, or give {0} or {3}"),
        ({"bad": "main~5"}, "the ends of the search are {0}, {0}; give ends with builds of their own"),
        ({"bad": "main~2", "skip": ("main~5",)}, "--skip main~5 is an end of the search; give another end"),
        ({"bad": "main~2", "skip": ("v1",)}, "v1: this repository has no such commit"),
        ({"bad": "main~2", "skip": ("main",)}, "--skip main: is no commit between the ends; give the digits of one"),
        ({"repo": Path("builds")}, "main~5: git finds no repository here"),
        ({"builds": None, "repo": None, "good": "pr:1"}, "pr:1: is no commit; give its digits or a branch, as in"),
        ({"builds": Path("twice")}, "--builds twice: 1-{0} and 2-{0} are of one commit; keep one"),
    ],
)
def test_what_is_no_history(options: dict[str, Any], words: str, shas: list[str]) -> None:
    built(shas[0], shas[3])
    for number in (1, 2):
        Path(f"twice/{number}-{shas[0][:10]}").mkdir(parents=True)
    with pytest.raises(UsageError) as caught:
        searched(**{"good": "main~5", "bad": "main", **options})
    assert str(caught.value).startswith(words.format(*(sha[:10] for sha in shas)))


def test_commits_whose_wheels_ci_kept_are_searched_too(shas: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = [{shas[0]: True, shas[1]: False, shas[2]: True}, {shas[2]: True, shas[4]: True, shas[5]: False}]
    asked = Mock(side_effect=[*found, *[found[1]] * 3])
    monkeypatch.setattr(bisect_commits, "commits_with_wheels", asked)
    good, bad, said = shas[0][:8], shas[2][:8], list[str]()
    ends, points, _ = searched(said, builds=None, repo=None, good=f"me/iree#commit:{good}", bad=bad, fixed="main")
    assert [each.args[:3] for each in asked.call_args_list] == [("me/iree", good, bad), ("me/iree", bad, "main")]
    assert ends == [shas[0][:10], shas[2][:10], shas[4][:10]]
    assert said == [f"--fixed: {shas[5][:10]} has no build, and {shas[4][:10]} takes its place"]
    assert [point.toolchain for point in points] == [f"me/iree#commit:{shas[place]}" for place in (0, 2, 4)]
    assert [(point.repository, point.unbuilt) for point in points] == [("me/iree", 0), ("me/iree", 1), ("me/iree", 0)]
    _, points, left = searched(builds=None, repo=None, good="a", bad="main", skip=(f"commit:{shas[5]}",))
    assert left == tuple(point.name for point in points), "the end of main has no wheels yet"
    with pytest.raises(UsageError, match="--skip x: is no commit between the ends"):
        searched(builds=None, repo=None, good="a", bad="main", skip=("x",))
    _, points, _ = searched(builds=None, good="main~3", bad="main")
    assert asked.call_args.args[:3] == ("iree-org/iree", shas[2], shas[5])
    assert [point.subject for point in points] == ["Change 2", "Change 4"]
