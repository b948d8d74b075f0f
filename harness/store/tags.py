"""The tags of runs, and which runs are left out by their tags.

A run that another command than `harness run` made has the tag `experiment` from its beginning; other tags, and that it
has one no longer, are said in `marks/`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.store.marks import Tagging
from harness.text import plural, shown

EXPERIMENT = "experiment"
_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class RunTag:
    """A tag that a run has."""

    run: str
    tag: str
    who: str  # Who gave it; of what it has from its beginning, the command that made it: `harness bench`
    since: str  # When, ISO 8601 in UTC


@dataclass(frozen=True, kw_only=True)
class RunChoice:
    """Which runs are asked: without options all that have not the tag `experiment`."""

    everything: bool = False  # Those too
    leave_out: tuple[str, ...] = ()  # Not those with one of these tags
    only: tuple[str, ...] = ()  # Only those with one of these tags, experiments too


WITHOUT_EXPERIMENTS = RunChoice()


def tags_of(born: Iterable[tuple[str, str, str]], taggings: Iterable[Tagging]) -> list[RunTag]:
    """All tags that runs have, sorted."""
    tags = {
        (run, EXPERIMENT): RunTag(run=run, tag=EXPERIMENT, who=f"harness {purpose}", since=started)
        for run, purpose, started in born
    }
    for said in taggings:
        if said.removed:
            tags.pop((said.run, said.tag), None)
        else:
            tags[said.run, said.tag] = RunTag(run=said.run, tag=said.tag, who=said.who, since=said.when)
    return [tags[key] for key in sorted(tags)]


def choose_runs(choice: RunChoice, runs: Collection[str], tags: Sequence[RunTag]) -> tuple[list[str], list[str]]:
    """Runs that are left out, and why, a sentence for each tag."""
    having: dict[str, dict[str, RunTag]] = {}
    for tag in tags:
        if tag.run in runs:
            having.setdefault(tag.tag, {})[tag.run] = tag
    notes = [
        f"No run here has the tag {shown(name)}; `harness results list` shows the tags."
        for name in (*choice.only, *choice.leave_out)
        if name not in having
    ]
    left: set[str] = set()
    if choice.only:
        kept = {run for name in choice.only for run in having.get(name, ())}
        left |= set(runs) - kept
        names = " or ".join(map(shown, choice.only))
        notes.append(f"Only runs with the tag {names} are read: {len(kept):,} of {len(runs):,}.")
    elif not choice.everything and EXPERIMENT in having:
        left |= having[EXPERIMENT].keys()
        them = "it" if len(having[EXPERIMENT]) == 1 else "them"
        notes.append(f"{_left_out(EXPERIMENT, having)} ({_by_whom(having[EXPERIMENT])}); --all takes {them} in.")
    for name in dict.fromkeys(choice.leave_out):
        if name in having and not having[name].keys() <= left:
            left |= having[name].keys()
            notes.append(f"{_left_out(name, having)}.")
    return sorted(left), notes


def _left_out(tag: str, having: Mapping[str, Mapping[str, RunTag]]) -> str:
    count = len(having[tag])
    return f"{plural(count, 'run')} with the tag {shown(tag)} {'is' if count == 1 else 'are'} left out"


def _by_whom(tags: Mapping[str, RunTag]) -> str:
    """`3 of harness compare, 1 of harness bench, 1 tagged by anna`."""
    counts = Counter(
        f"of {tag.who}" if tag.who.startswith("harness ") else f"tagged by {shown(tag.who)}" for tag in tags.values()
    )
    named = counts.most_common(_NAMED)
    rest = sum(counts.values()) - sum(count for _, count in named)
    return ", ".join([*(f"{count:,} {who}" for who, count in named), *([f"{rest:,} by others"] if rest else [])])
