"""Runs of `harness run --shard` -> the one run that they are parts of, in which each shard is a host.

`join_shards` takes runs that were checked where they came in, and gives a run; `write_joined` makes its folder.
"""

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.errors import RunError, UsageError
from harness.records.case import Case
from harness.records.run import Header, HostRecord, ModelRecord, Placed, Run
from harness.store.clock import parse_time, utc_text
from harness.store.files import LOGS_FOLDER, read_document
from harness.store.journal import new_run_id
from harness.store.run_directory import HEADER_FILE, RECORDS, RunDirectory
from harness.suite.shards import Shard, parse_shard
from harness.text import plural, shown

_ENDING = "-joined"
_ADVICE = "give all shards of one run, each once, in one command"
# Of a run's settings, those that change nothing of what is measured, and those that tell shards apart.
_OWN_SETTINGS = ("jobs", "keep_going", "skip", "shard")
# Shards that a sentence names.
_MOST_NAMES = 8


@dataclass(frozen=True, kw_only=True)
class ShardRun:
    """A finished run of one shard, which was checked."""

    name: str  # What messages call it: where it was found
    folder: Path
    run: Run
    shard: Shard
    plan_groups: tuple[str, ...]  # All groups of its suite's plan, in order

    @property
    def host(self) -> str:
        """What its machine is called in the joined run."""
        return f"shard-{self.shard.number}"

    @property
    def groups(self) -> list[str]:
        """Its own groups."""
        return list(dict.fromkeys(case.group for case in self.run.header.cases))


def is_shard(folder: Path) -> bool:
    """Whether a run's folder says that it is a shard; what cannot be read is none, and is refused as a run."""
    try:
        return bool(json.loads(read_document(folder / HEADER_FILE))["settings"].get("shard"))
    except (RunError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return False


def shard_run(name: str, folder: Path, run: Run) -> ShardRun:
    """A shard's run with what its settings say of it."""
    groups = run.header.settings.get("plan_groups")
    shard = None
    with contextlib.suppress(UsageError):
        shard = parse_shard(str(run.header.settings["shard"]))
    if shard is None or not isinstance(groups, list):
        raise RunError(f"{name}: {HEADER_FILE} is damaged (what it says of its shard); run the shard again")
    if run.hosts:
        raise RunError(f"{name}: was measured by several hosts, and shards of such runs are not joined")
    return ShardRun(name=name, folder=folder, run=run, shard=shard, plan_groups=tuple(map(str, groups)))


def join_shards(shards: Sequence[ShardRun]) -> Run:
    """The run that these are all shards of."""
    for shard in shards[1:]:
        _require_same_run(shards[0], shard)
    _require_each_once(shards)
    shards = sorted(shards, key=lambda known: (utc_text(known.run.header.started), known.shard.number))
    plan = shards[0].plan_groups
    host_of = {group: shard.host for shard in shards for group in shard.groups}
    if sorted(group for shard in shards for group in shard.groups) != sorted(plan):
        raise RunError(f"{shards[0].name}: its shards do not have each group of their suite once; run them again")
    every_case = (case for shard in shards for case in shard.run.header.cases)

    def every(field: str) -> tuple[Any, ...]:
        return tuple(record for shard in shards for record in getattr(shard.run, field))

    def hosted(field: str) -> tuple[Any, ...]:
        return tuple(replace(record, host=shard.host) for shard in shards for record in getattr(shard.run, field))

    return Run(
        header=_header(shards, tuple(sorted(every_case, key=lambda case: plan.index(case.group)))),
        builds=every("builds"),
        ir=every("ir"),
        checks=every("checks"),
        references=every("references"),
        rounds=hosted("rounds"),
        lost=hosted("lost"),
        work=every("work"),
        peaks=hosted("peaks"),
        finished=True,
        hosts=tuple(
            HostRecord(name=shard.host, environment=shard.run.header.environment) for shard in shards if shard.groups
        ),
        placed=tuple(Placed(group=group, host=host_of[group]) for group in plan),
    )


def write_joined(run: Run, shards: Sequence[ShardRun], results: Path, report_of: Callable[[Run], str]) -> Path:
    """The folder of a joined run, with the logs of its shards."""
    with RunDirectory.create(results, run.header) as directory:
        for field in RECORDS:
            for record in getattr(run, field):
                directory.append(record)
        for shard in shards:
            for log in sorted((shard.folder / LOGS_FOLDER).glob("*.txt")):
                directory.keep_log(log)
        directory.finish(report_of)
    return directory.path


def _require_same_run(first: ShardRun, other: ShardRun) -> None:
    """Refuse shards that do not belong together."""
    facts = [_facts(shard) for shard in (first, other)]
    for what in {**facts[0], **facts[1]}:
        ours, theirs = (known.get(what) for known in facts)
        if ours != theirs:
            raise RunError(
                f"{other.name} is not of the same run as {first.name}: their {what} differ ({shown(str(ours))[:80]}; "
                f"{shown(str(theirs))[:80]}); {_ADVICE}"
            )


def _facts(shard: ShardRun) -> dict[str, object]:
    """What all shards of a run have in common, each under its name in a sentence; the most telling first."""
    header = shard.run.header
    settings = {f"settings {key}": value for key, value in header.settings.items() if key not in _OWN_SETTINGS}
    return {
        "numbers of shards": shard.shard.count,
        "suite files": header.suite_sha256,
        "releases of IREE": [(known.version, known.compiler_sha256) for known in header.toolchains],
        "versions of the harness": f"{header.harness_version} {header.harness_commit}",
        **settings,
    }


def _require_each_once(shards: Sequence[ShardRun]) -> None:
    numbers = Counter(shard.shard.number for shard in shards)
    count = shards[0].shard.count
    for number, times in numbers.items():
        if times > 1:
            twice = [shard.name for shard in shards if shard.shard.number == number]
            raise RunError(f"{twice[0]} and {twice[1]} are both shard {number}/{count}; {_ADVICE}")
    missing = [f"{number}/{count}" for number in range(1, count + 1) if number not in numbers]
    if missing:
        more = f" and {len(missing) - _MOST_NAMES} more" if len(missing) > _MOST_NAMES else ""
        raise RunError(
            f"{plural(len(missing), 'shard')} {'is' if len(missing) == 1 else 'are'} missing,"
            f" {', '.join(missing[:_MOST_NAMES])}{more}; {_ADVICE}"
        )


def _header(shards: Sequence[ShardRun], cases: tuple[Case, ...]) -> Header:
    """That of the first shard to begin, as if it had had all cases."""
    first = shards[0].run.header
    models: dict[str, ModelRecord] = {}
    for shard in shards:
        for model in shard.run.header.models:
            if models.setdefault(model.name, model).mlir_sha256 != model.mlir_sha256:
                raise RunError(
                    f"{shard.name}: model {shown(model.name)} is another program than in another shard; {_ADVICE}"
                )
    begun = parse_time(first.started)
    if begun is None:
        raise RunError(f"{shards[0].name}: its start is no time; run the shard again")
    common = {key: value for key, value in first.settings.items() if key not in (*_OWN_SETTINGS, "plan_groups")}
    return replace(
        first,
        id=f"{new_run_id(first.suite_name, begun)}{_ENDING}",
        command=_without_shard(first.command),
        cases=cases,
        models=tuple(models[name] for name in dict.fromkeys(case.model for case in cases) if name in models),
        settings={**common, "joined_from": [shard.run.header.id for shard in shards]},
        environment={},
    )


def _without_shard(command: Sequence[str]) -> tuple[str, ...]:
    """The command line that runs the whole suite."""
    words = [word for word in command if not word.startswith("--shard=")]
    while "--shard" in words:
        place = words.index("--shard")
        del words[place : place + 2]
    return tuple(words)
