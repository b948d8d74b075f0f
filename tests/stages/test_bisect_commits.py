"""Which commits a bisect searches: those of builds in a folder, in the order of a checkout or of their numbers."""

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

NOTHING = " "


@pytest.fixture
def shas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Six commits of the checkout `iree`, the third of which merges a seventh."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bisect_commits, "revision_of", lambda place: (place / "stated").read_text().strip())
    git(tmp_path, "init", "--quiet", "iree")
    checkout = Path("iree")
    found = [commit(checkout, f"Change {number}") for number in range(2)]
    git(checkout, "checkout", "--quiet", "-b", "side")
    side = commit(checkout, "Aside")
    git(checkout, "checkout", "--quiet", "main")
    git(checkout, "merge", "--quiet", "--no-ff", "--message", "Change 2", "side")
    found += [git(checkout, "rev-parse", "HEAD"), *(commit(checkout, f"Change {number}") for number in range(3, 6))]
    return [*found, side]


def built(**names: str) -> None:
    """Builds by their names, in which `_` stands for a hyphen, and what each states; of "" there is no compiler."""
    for name, stated in names.items():
        folder = Path("builds", name.replace("_", "-"))
        (folder / "tools").mkdir(parents=True)
        (folder / "stated").write_text(stated)
        if stated:
            (folder / "tools" / "iree-compile").touch()


def searched(
    said: list[str] | None = None, **options: Any
) -> tuple[list[str | None], tuple[CommitPoint, ...], tuple[str, ...]]:
    """The names of the ends, the commits between them, and what is searched."""
    asked = BisectOptions(over="commits", **{"builds": Path("builds"), **options})
    found, points, names = with_commits(asked, (said if said is not None else []).append)
    return [found.good, found.bad, found.fixed], points, names


def test_builds_stand_in_the_order_of_the_checkout(shas: list[str]) -> None:
    described = f"v3_12_g{shas[4][:9]}"
    built(**{described: NOTHING, "last": shas[5], "else": NOTHING, "logs": ""})
    built(**{f"b{shas[1][:7]}": NOTHING, f"x_{shas[1][:7].upper()}": "", f"of_{shas[0]}": NOTHING})
    said: list[str] = []
    ends, points, names = searched(said, repo=Path("iree"), good="main~4", bad="main")
    assert ends == [shas[1][:10], shas[5][:10], None]
    assert [(point.revision, point.subject, point.unbuilt) for point in points] == [
        (shas[1], "Change 1", 0),
        (shas[4], "Change 4", 2),
        (shas[5], "Change 5", 0),
    ]
    assert Path(points[0].toolchain).name == f"x-{shas[1][:7].upper()}", "a build that failed is one too"
    left_out = ", ".join(sorted((f"b{shas[1][:7]}", f"of-{shas[0]}", "else")))
    why = f"by name or compiler they are of no commit from {ends[0]} to {ends[1]}"
    assert said == [f"Left out, since {why}: {left_out}"]
    assert names == tuple(point.name for point in points)
    _, same, fewer = searched(repo=Path("iree"), good="main~4", bad="main", skip=(shas[4][:8],))
    assert (same, fewer) == (points, (names[0], names[2]))


def test_builds_stand_in_the_order_of_their_numbers(shas: list[str]) -> None:
    built(**{f"10_{shas[3][:8]}": NOTHING, "2": shas[1], "3.x": NOTHING, "11 late": NOTHING, "logs": ""})
    ends, points, _ = searched(good=shas[1][:8], bad="3.x", fixed=shas[3])
    assert ends == [shas[1][:10], "3.x", shas[3][:8]]
    assert [Path(point.toolchain).name for point in points] == ["2", "3.x", f"10-{shas[3][:8]}"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"builds": Path("more")}, "--builds more: nothing says where b stands among the others; give --repo, a ch"),
        ({"bad": "1-a"}, "the ends of the search are 1-a, 1-a; good, bad and fixed have to follow each other"),
        ({"bad": "3"}, "--bad 3: no builds in builds are of it; give another commit, one of 2-b, 1-a"),
        ({"skip": ("2-b",)}, "--skip 2-b is an end of the search; give another end"),
        ({"repo": Path("iree"), "good": "v1"}, "v1: this repository has no such commit; `git fetch origin`"),
        ({"repo": Path("iree"), "good": "main", "bad": "main~1"}, "main~1 does not follow main in /"),
        ({"repo": Path("iree"), "good": "main~2", "bad": "main"}, "--good main~2: no builds in builds are of it; giv"),
    ],
)
def test_what_is_no_history(options: dict[str, Any], words: str, shas: list[str]) -> None:
    built(**{"1_a": NOTHING, "2_b": NOTHING})
    Path("more/b/tools").mkdir(parents=True)
    Path("more/b/tools/iree-compile").touch()
    with pytest.raises(UsageError) as caught:
        searched(**{"good": "1-a", "bad": "2-b", **options})
    assert str(caught.value).startswith(words)


def test_two_builds_of_one_commit_are_told(shas: list[str]) -> None:
    built(**{f"1_{shas[0]}": NOTHING, f"2_{shas[0]}": NOTHING})
    for repo in (None, Path("iree")):
        with pytest.raises(UsageError, match=f"1-{shas[0]} and 2-{shas[0]} are of one commit; keep one of a commit$"):
            searched(good="main~5", bad="main", repo=repo)


def test_commits_whose_wheels_ci_kept_are_searched_too(shas: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = [{shas[0]: True, shas[1]: False, shas[2]: True}, {shas[2]: True, shas[4]: True, shas[5]: False}]
    asked = Mock(side_effect=[*found, found[1]])
    monkeypatch.setattr(bisect_commits, "commits_with_wheels", asked)
    good, bad = shas[0][:8], shas[2][:8]
    ends, points, _ = searched(builds=None, good=f"me/iree#commit:{good}", bad=bad, fixed="main")
    assert [each.args[:3] for each in asked.call_args_list] == [("me/iree", good, bad), ("me/iree", bad, "main")]
    assert ends == [shas[0][:10], shas[2][:10], shas[4][:10]], "a branch is the last commit that has wheels"
    assert [point.toolchain for point in points] == [f"me/iree#commit:{shas[place]}" for place in (0, 2, 4)]
    assert [(point.repository, point.unbuilt) for point in points] == [("me/iree", 0), ("me/iree", 1), ("me/iree", 0)]
    no_wheels = "--bad main: no builds that CI kept are of it; give another commit, one of "
    with pytest.raises(UsageError, match=f"^{no_wheels}{shas[4][:10]}, {shas[2][:10]}$"):
        searched(builds=None, repo=Path("iree"), good="main~3", bad="main")
    assert asked.call_args.args[:3] == ("iree-org/iree", shas[2], shas[5])
