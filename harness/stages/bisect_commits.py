"""Which commits of IREE a bisect searches, in their order, and what each is built as: wheels of CI, or a user's builds.

The name of a build, or else its compiler, says of which commit it is. Git or GitHub say how commits follow each other.
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
from harness.toolchain.fetched import REPOSITORY, commits_with_wheels
from harness.toolchain.own import kind_named, revision_of

# Of a commit, in the names of positions.
_DIGITS = 10
# What may be digits of a commit in a folder's name, also as `git describe` writes them.
_HASH = re.compile(r"(?<![0-9a-z])g?([0-9a-f]{7,40})(?![0-9a-z])")


def with_commits(
    options: BisectOptions, note: Callable[[str], None]
) -> tuple[BisectOptions, tuple[CommitPoint, ...], tuple[str, ...]]:
    """The options with the ends called as positions are; the commits between them, and those that are searched."""
    given = words = [getattr(options, name) for name in options.ends]
    repo = options.repo or (Path() if options.builds else None)
    subjects: dict[str, str] = {}
    if repo is not None:
        commits = [require_commit(word, repo) for word in words]
        for first, last in pairwise(commits):
            subjects |= commits_from(first, last)
        words = [commit.sha for commit in commits]
    if options.builds is not None:
        ends, line, points = words, [*subjects], _built_in(options.builds, subjects, note)
    else:
        ends, line, points = _built_by_ci(words, subjects, note)
    if not points:
        raise UsageError(f"no commit from {given[0]} to {given[-1]} has a build; give other ends, or another --builds")
    names, built = list[str](), {point.revision: point.name for point in points}
    for place, (word, sha) in enumerate(zip(given, ends, strict=True)):
        # In place of an end, what is built of one towards another end could hide the change.
        room = [sha, *(line[line.index(sha) + 1 : line.index(ends[2])] if place == 1 and ends[2:] else ())]
        if options.builds is None and word.rpartition("#")[2] == "main" and place == len(ends) - 1:
            room = line[::-1]  # of CI, its newest that has wheels, as everywhere
        option, found = f"--{options.ends[place]}: {sha[:_DIGITS]}", next((built[c] for c in room if c in built), None)
        if found is None:
            raise UsageError(f"{option} has no build; build it, or give {points[0].name} or {points[-1].name}")
        if sha not in built:
            note(f"{option} has no build, and {found} takes its place")
        names.append(found)
    if len(set(names)) < len(names):
        raise UsageError(f"the ends of the search are {', '.join(names)}; give ends with builds of their own")
    for word in options.skip:
        digits = require_commit(word, repo).sha if repo else word.rpartition("#")[2].removeprefix("commit:").lower()
        meant = [sha for sha in line if sha.startswith(digits)]
        if len(meant) != 1:
            raise UsageError(f"--skip {word}: is no commit between the ends; give the digits of one")
        if built.pop(meant[0], "") in names:
            raise UsageError(f"--skip {word} is an end of the search; give another end")
    named: dict[str, Any] = dict(zip(options.ends, names, strict=True))
    return replace(options, repo=repo, **named), points, tuple(built.values())


def _along(
    line: Sequence[str], built: Mapping[str, str], subjects: Mapping[str, str], repository: str = ""
) -> tuple[CommitPoint, ...]:
    """What is built of a line's commits, in its order."""
    points, unbuilt = list[CommitPoint](), 0
    for sha in line:
        unbuilt += 1
        if sha in built:
            point = CommitPoint(name=sha[:_DIGITS], toolchain=built[sha], revision=sha, repository=repository)
            points.append(replace(point, subject=subjects.get(sha, ""), unbuilt=unbuilt - 1))
            unbuilt = 0
    return tuple(points)


def _built_in(builds: Path, subjects: Mapping[str, str], note: Callable[[str], None]) -> tuple[CommitPoint, ...]:
    """The builds in a folder that are of these commits."""
    built, others = dict[str, str](), list[str]()
    for place in sorted(filter(Path.is_dir, builds.iterdir())):
        hashes = _HASH.findall(place.name.lower())
        if all(map(str.isdigit, hashes)):  # which may be a date
            hashes += [revision] if (revision := revision_of(place)) else []
        means = ([sha for sha in subjects if sha.startswith(word)] for word in hashes)
        sha = next((shas[0] for shas in means if len(shas) == 1), None)
        if sha is None:
            others += [place.name] if kind_named(str(place.absolute())) is not None else []
        elif built.setdefault(sha, str(place)) != str(place):
            raise UsageError(f"--builds {builds}: {Path(built[sha]).name} and {place.name} are of one commit; keep one")
    if others:
        note(f"Left out, since neither name nor compiler says a commit between the ends: {', '.join(others)}")
    return _along([*subjects], built, subjects)


def _built_by_ci(
    words: Sequence[str], subjects: Mapping[str, str], note: Callable[[str], None]
) -> tuple[list[str], list[str], tuple[CommitPoint, ...]]:
    """The hashes of these commits and branches, those from the first to the last, and what GitHub's CI kept of them."""
    repository = words[0].rpartition("#")[0] or REPOSITORY
    ends, kept = list[str](), dict[str, bool]()
    names = [word.rpartition("#")[2].removeprefix("commit:") for word in words]
    if others := [word for word in names if ":" in word]:
        raise UsageError(f"{others[0]}: is no commit; give its digits or a branch, as in --good 2b05c5dbb2 --bad main")
    for first, last in pairwise(names):
        found = commits_with_wheels(repository, first, last, note)
        ends = [*(ends or [next(iter(found))]), next(reversed(found))]
        kept |= found
    built = {sha: f"{repository}#commit:{sha}" for sha, is_kept in kept.items() if is_kept}
    return ends, [*kept], _along([*kept], built, subjects, repository)
