"""Which commits of IREE a bisect searches, in their order, and what each is built as: wheels of CI, or a user's builds.

The name of a build, or else its compiler, says of which commit it is. A checkout says how commits follow each other.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness.compare.commits import commits_from, require_commit
from harness.errors import UsageError
from harness.records.bisection import CommitPoint
from harness.stages.options import BisectOptions
from harness.text import such_as
from harness.toolchain.fetched import REPOSITORY, commits_with_wheels
from harness.toolchain.own import kind_of_toolchain, revision_of

# Of a commit, in the names of positions.
_DIGITS = 10
# What may be digits of a commit in a folder's name, also as `git describe` writes them.
_HASH = re.compile(r"(?<![0-9a-z])g?([0-9a-f]{7,40})(?![0-9a-z])")
_NUMBER = re.compile(r"(\d+)(?=[-_. ]|$)")


def with_commits(
    options: BisectOptions, note: Callable[[str], None]
) -> tuple[BisectOptions, tuple[CommitPoint, ...], tuple[str, ...]]:
    """The options with the ends called as positions are; the commits between them, and those that are searched."""
    words: dict[str, str] = {name: getattr(options, name) for name in options.ends}
    line: dict[str, str] = {}
    if options.repo is not None:
        commits = [require_commit(word, options.repo) for word in words.values()]
        for first, last in pairwise(commits):
            line |= commits_from(first, last)
        words = dict(zip(words, (commit.sha for commit in commits), strict=True))
    if options.builds is None:
        words, points = _of_ci(words, line, note)
    else:
        points = _in_line(options.builds, line, note) if line else _numbered(options.builds)
    names = [point.name for point in points]
    if twins := [Path(point.toolchain).name for point in points if names.count(point.name) > 1]:
        raise UsageError(f"--builds {options.builds}: {' and '.join(twins)} are of one commit; keep one of a commit")
    at = [_end(options, name, word, points) for name, word in words.items()]
    ends = [names[place] for place in at]
    if at != sorted(set(at)):
        raise UsageError(f"the ends of the search are {', '.join(ends)}; good, bad and fixed have to follow each other")
    points = points[at[0] : at[-1] + 1]
    skipped = {point.name for word in options.skip for point in points if _is_meant(word, point)}
    if lost := next((end for end in ends if end in skipped), None):
        raise UsageError(f"--skip {lost} is an end of the search; give another end")
    searched = tuple(point.name for point in points if point.name not in skipped)
    named: dict[str, Any] = dict(zip(words, ends, strict=True))
    return replace(options, **named), tuple(points), searched


def _end(options: BisectOptions, name: str, word: str, points: list[CommitPoint]) -> int:
    """The place of an end among the points."""
    found = [place for place, point in enumerate(points) if _is_meant(word, point)]
    if len(found) != 1:
        others = such_as([point.name for point in (points if name == "good" else points[::-1])])
        where = f" in {options.builds}" if options.builds else " that CI kept"
        given, number = f"--{name} {getattr(options, name)}", len(found) or "no"
        raise UsageError(f"{given}: {number} builds{where} are of it; give another commit{others}")
    return found[0]


def _is_meant(word: str, point: CommitPoint) -> bool:
    short, long = sorted((word.lower(), point.revision), key=len)
    return word in (point.name, Path(point.toolchain).name) or (len(short) >= 4 and long.startswith(short))


def _hashes(place: Path, begin: int = 0) -> list[str]:
    """What may say of which commit a build is; digits alone may be a date."""
    names = _HASH.findall(place.name.lower(), begin)
    return [*filter(None, [*names, revision_of(place) if all(map(str.isdigit, names)) else ""])]


def _in_line(builds: Path, line: Mapping[str, str], note: Callable[[str], None]) -> list[CommitPoint]:
    """The builds of a line's commits, in its order."""
    order, places, others = [*line], list[tuple[str, str]](), list[str]()
    for place in sorted(filter(Path.is_dir, builds.iterdir())):
        means = ([sha for sha in order if sha.startswith(word)] for word in _hashes(place))
        found = next((shas[0] for shas in means if len(shas) == 1), None)
        if found is not None:
            places.append((found, str(place)))
        elif kind_of_toolchain(place) is not None:
            others.append(place.name)
    if others:
        first, last = order[0][:_DIGITS], order[-1][:_DIGITS]
        note(f"Left out, since by name or compiler they are of no commit from {first} to {last}: {', '.join(others)}")
    return _along(line, places)


def _of_ci(
    words: Mapping[str, str], line: Mapping[str, str], note: Callable[[str], None]
) -> tuple[dict[str, str], list[CommitPoint]]:
    """The commits whose wheels GitHub's CI kept; a branch is the last of those."""
    fork = words["good"].rpartition("#")[0]
    commits = {name: word.rpartition("#")[2].removeprefix("commit:") for name, word in words.items()}
    kept: dict[str, bool] = {}
    for first, last in pairwise(commits.values()):
        kept |= commits_with_wheels(fork or REPOSITORY, first, last, note)
    wheels = [(sha, f"{fork}{'#' if fork else ''}commit:{sha}") for sha, has in kept.items() if has]
    newest = wheels[-1][0] if wheels else ""
    ends = {name: word if _HASH.fullmatch(word.lower()) else newest for name, word in commits.items()}
    found = _along(line or dict.fromkeys(kept, ""), wheels)
    return ends, [replace(point, repository=fork or REPOSITORY) for point in found]


def _along(line: Mapping[str, str], built: Sequence[tuple[str, str]]) -> list[CommitPoint]:
    """What is built of a line's commits, in its order."""
    places = {sha: place for place, sha in enumerate(line)}
    points, before = list[CommitPoint](), -1
    for at, sha, toolchain in sorted((places[sha], sha, toolchain) for sha, toolchain in built if sha in places):
        unbuilt, before = max(at - before - 1, 0), at
        name, subject = sha[:_DIGITS], line[sha]
        points.append(CommitPoint(name=name, toolchain=toolchain, revision=sha, subject=subject, unbuilt=unbuilt))
    return points


def _numbered(builds: Path) -> list[CommitPoint]:
    """The builds in the order of the numbers with which their names begin."""
    found: dict[int, CommitPoint] = {}
    for place in filter(Path.is_dir, builds.iterdir()):
        number = _NUMBER.match(place.name)
        if number is None and kind_of_toolchain(place) is None:
            continue
        if number is None or int(number[1]) in found:
            raise UsageError(
                f"--builds {builds}: nothing says where {place.name} stands among the others; give --repo, a checkout "
                "of IREE, or begin each name with a number of its own, as in 01-2b05c5dbb2"
            )
        revision = next(iter(_hashes(place, number.end())), "")
        name = revision[:_DIGITS] or place.name
        found[int(number[1])] = CommitPoint(name=name, toolchain=str(place), revision=revision)
    return [found[number] for number in sorted(found)]
