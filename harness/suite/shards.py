"""A plan -> the part of it that one of several machines runs: `--shard 2/8`, without anything between the machines.

Each machine divides the same plan by itself, so the division goes by names alone, and by nothing of the machine. The
cases of a group stay together, since they are measured against each other. So do the devices of a model, whose
baselines are checked against the first device's, unless ONNX Runtime says what is right on each of them.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.errors import UsageError
from harness.models.model import Model
from harness.records.case import Case
from harness.text import shown

SHARD_PATTERN = r"^([0-9]{1,4})/([0-9]{1,4})$"


@dataclass(frozen=True, kw_only=True)
class Shard:
    """One of `count` parts of a plan, `number` being from 1."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


@dataclass(frozen=True, kw_only=True)
class Part:
    """What a shard has of a plan."""

    shard: Shard
    cases: tuple[Case, ...]
    groups: tuple[str, ...]  # All that the plan has, in order
    groups_elsewhere: int  # How many groups of other shards would be measured on a machine like this one


def parse_shard(text: str) -> Shard:
    """`2/8`, the second of eight."""
    match = re.fullmatch(SHARD_PATTERN, text.strip())
    shard = Shard(number=int(match[1]), count=int(match[2])) if match is not None else None
    if shard is None or not 1 <= shard.number <= shard.count:
        raise UsageError(
            f"--shard {shown(text)}: is no shard; write its number and how many there are, as in 2/8, from 1/8 to 8/8"
        )
    return shard


def part_of(cases: Sequence[Case], models: Iterable[Model], shard: Shard) -> Part:
    """The cases of one shard, in the order of the whole plan that is given."""
    shards = _divide(cases, models, shard.count)
    groups = tuple(dict.fromkeys(case.group for case in cases))
    own = {group for group in groups if shards[group] == shard.number}
    return Part(
        shard=shard,
        cases=tuple(case for case in cases if case.group in own),
        groups=groups,
        groups_elsewhere=len({case.group for case in cases if case.skip is None} - own),
    )


def shard_settings(part: Part) -> dict[str, Any]:
    """What the header of a shard's run says of it; see harness.store.shards, which reads it."""
    return {"shard": str(part.shard), "plan_groups": list(part.groups)}


def _divide(cases: Sequence[Case], models: Iterable[Model], count: int) -> Mapping[str, int]:
    """The shard of each group, from 1.

    Shards have about as many cases each. Where there is room, what stays together goes to the shard that it hashes to
    (rendezvous hashing), so that a suite that grows by a model moves few of the others.
    """
    alone = {model.name for model in models if model.reference == "onnxruntime" and not model.expected}
    together = {case.group: case.group if case.model in alone else case.model for case in cases}
    sizes = Counter(together[case.group] for case in cases)
    room = len(cases) // count
    taken = dict.fromkeys(range(1, count + 1), 0)
    found: dict[str, int] = {}
    for name in sorted(sizes, key=lambda name: (-sizes[name], _rank(name, 0))):
        empty = [number for number in taken if not taken[number]]
        # No shard is left empty while there is something for it.
        open_shards = empty if len(empty) >= len(sizes) - len(found) else list(taken)
        wanted = sorted(open_shards, key=lambda number: _rank(name, number))
        fitting = [number for number in wanted if taken[number] + sizes[name] <= room]
        found[name] = fitting[0] if fitting else min(wanted, key=lambda number: taken[number])
        taken[found[name]] += sizes[name]
    return {group: found[name] for group, name in together.items()}


def _rank(name: str, number: int) -> str:
    return hashlib.sha256(f"{number}:{name}".encode(errors="surrogatepass")).hexdigest()
