"""The two sides: what a user calls them, which toolchains they need, what reports say of them; whether they compare."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from harness.cache import environments_root
from harness.compare.commits import COMMIT_PREFIX, Commit, find_commit, how_to_have, require_commit
from harness.compare.judge import CHANGED
from harness.compare.pairs import TOOLCHAIN_PREFIX, Pair, Side, is_toolchain
from harness.errors import ToolchainError, UsageError
from harness.machine.environment import Environment, describe_machine, machine_id
from harness.records.comparison import MachineFacts, Row, SelfcheckFacts, SideFacts
from harness.records.run import Header, HostRecord, ToolchainRecord
from harness.store.folders import LATEST, find_folder
from harness.store.run_directory import HEADER_FILE
from harness.text import did_you_mean, shown
from harness.toolchain import Toolchain, find_toolchain, get_toolchains
from harness.toolchain.fetched import is_fetched
from harness.toolchain.own import is_own, kind_named

# What a word of the user's means: a run's folder, a commit, or a release as in `iree==3.12.0`.
Named = Path | Commit | str
_SELFCHECK = TypeAdapter(SelfcheckFacts)
# Where a selfcheck found that even a change to twice the time stays unseen.
_SEES_NOTHING = 1.0
# Hosts that a line has room for.
_MOST_HOSTS = 4


def require_two(sides: Sequence[str], toolchains: Sequence[str], within: Path | None) -> tuple[str, str]:
    """The two sides, from arguments and `--toolchain` options in this order; of `--within`, its run twice."""
    given = [*sides, *(name if is_toolchain(name) else f"{TOOLCHAIN_PREFIX}{name}" for name in toolchains)]
    if within is not None:
        if given:
            raise UsageError(f"--within {within} compares the variants of that run; leave out {', '.join(given)}")
        return str(within), str(within)
    if len(given) != 2:
        raise UsageError(
            "give two sides, as in `harness compare results/base results/head`; each is a run directory, a toolchain "
            "such as iree==3.12.0, or a commit such as HEAD~1; or --within with one run"
        )
    return given[0], given[1]


def what_is_named(word: str, results: Path) -> Named:
    """What a user means by a side: a toolchain, a commit that is called so, a run, or else a commit."""
    if is_toolchain(word):
        return word
    if word.startswith(("pr:", "run:")) or (is_fetched(word) and not word.startswith(("main", COMMIT_PREFIX))):
        return f"{TOOLCHAIN_PREFIX}{word}"
    if (own := kind_named(word)) is not None:
        if (Path(word) / HEADER_FILE).is_file():
            raise UsageError(f"{shown(word)} holds a run and {own}; say which with --toolchain, or move one away")
        return f"{TOOLCHAIN_PREFIX}{word}"
    if word.startswith(COMMIT_PREFIX):
        return replace(require_commit(word.removeprefix(COMMIT_PREFIX)), name=word)
    try:
        run, why_none = find_folder(word, results, kind="run"), None
    except UsageError as error:
        run, why_none = Path(word), error
    is_run = (run / HEADER_FILE).is_file() or (why_none is not None and word != LATEST)
    is_path = word.startswith((".", os.sep)) or Path(word).is_absolute()  # which no commit's name is
    commit = None if is_path else find_commit(word)
    if commit is None and why_none is not None:
        raise why_none
    if commit is not None and is_run:
        path = f"./{run}" if why_none is None else "its folder"
        raise UsageError(f"{shown(word)} is a run and a commit; say {path} or {COMMIT_PREFIX}{word}")
    if commit is not None:
        return commit
    if run.exists() or is_path or (run.parent != Path() and run.parent.is_dir()):
        return run
    hint = did_you_mean(word, [LATEST], "")
    raise UsageError(
        f"{shown(word)}: there is no such run in {results}, no such folder here, and {how_to_have()}{hint}"
    )


def require_modules(label: str, header: Header) -> None:
    """Refuse a run that was imported where something is to be measured."""
    if file := header.imported:
        what = f"was imported from {file} and has no modules to measure"
        raise UsageError(f"{label}: {what}; take a run of `harness run`, or compare two such with --no-remeasure")


def toolchains_here(sides: Sequence[Side], on_install: Callable[[str], None]) -> Mapping[ToolchainRecord, Toolchain]:
    """The toolchains of all cases of these sides, installed where they are not here.

    Where a compiler was built again since a run, what the run compiled is still in the cache, and runs on the runtime
    that is here now.
    """
    for side in sides:
        require_modules(side.label, side.run.header)
    records = dict.fromkeys(record for side in sides for record in side.toolchains.values())
    found = {record: toolchain_of(record, on_install) for record in records}
    another = next((toolchain for toolchain in found.values() if toolchain is not None), None)
    here: dict[ToolchainRecord, Toolchain] = {}
    for record, toolchain in found.items():
        if toolchain is None:
            runtime = another or find_toolchain()
            gone = f"its compiler was built again since, and its modules run on the runtime of {runtime.version}"
            on_install(f"IREE {record.version}: {gone}")
            toolchain = replace(
                runtime,
                version=record.version,
                revision=record.revision,
                compiler_sha256=record.compiler_sha256,
                compiler_is_gone=True,
                remarks=(gone,),
            )
        here[record] = toolchain
    return here


def toolchain_of(record: ToolchainRecord, on_install: Callable[[str], None]) -> Toolchain | None:
    """The toolchain that a run was made with; None where another compiler has taken its place."""
    try:
        (found,) = get_toolchains([record.version], root=environments_root(), on_install=on_install)
    except ToolchainError:
        if not is_own(record.version):
            raise
        return None
    return found if found.compiler_sha256 == record.compiler_sha256 else None


def _describe_hosts(environments: Mapping[str, Environment]) -> str:
    hosts = [f"{host}: {describe_machine(environment)}" for host, environment in environments.items()]
    more = f"; and {len(hosts) - _MOST_HOSTS} more hosts" if len(hosts) > _MOST_HOSTS else ""
    return f"{'; '.join(hosts[:_MOST_HOSTS])}{more}"


def describe_toolchains(header: Header) -> tuple[str, ...]:
    """Release and revision of each, and what is remarkable: `3.12.0 (f17ed20a11)`."""
    more = {record: ", ".join(filter(None, (record.revision[:10], *record.remarks))) for record in header.toolchains}
    return tuple(f"{record.version} ({said})" if said else record.version for record, said in more.items())


def remarks_on(sides: Iterable[Side], toolchains: Mapping[ToolchainRecord, Toolchain]) -> tuple[str, ...]:
    """What bears on all that is measured with the toolchains of these sides, as sentences."""
    records = dict.fromkeys(record for side in sides for record in side.toolchains.values())
    found = {record: toolchains.get(record, record).remarks for record in records}
    return tuple(f"IREE {record.version}: {remark}" for record, remarks in found.items() for remark in remarks)


def side_facts(side: Side, label: str, variants: Iterable[str] = ()) -> SideFacts:
    """What a report says of a side."""
    header = side.run.header
    return SideFacts(
        label=label,
        run=header.id,
        suite=header.suite,
        started=header.started,
        toolchains=describe_toolchains(header),
        machine=_describe_hosts(side.run.environments) or describe_machine(header.environment),
        variants=tuple(dict.fromkeys(variants)),
        commit=side.commit.sha if side.commit is not None else "",
        subject=side.commit.subject if side.commit is not None else "",
    )


def machine_facts(environment: Environment, rows: Iterable[Row], hosts: Sequence[HostRecord] = ()) -> MachineFacts:
    """Where a comparison was made, its rate of false alarms, and what the controls of this comparison showed."""
    controls = [row for row in rows if row.control]
    places: list[Environment] = [*(host.environment for host in hosts)] or [environment]
    return MachineFacts(
        description=_describe_hosts({host.name: host.environment for host in hosts}) or describe_machine(environment),
        selfcheck=selfcheck_of(places[0]) if len(places) == 1 else None,
        controls=len(controls),
        controls_flagged=sum(row.verdict in CHANGED for row in controls),
    )


def selfcheck_of(environment: Environment) -> SelfcheckFacts | None:
    """What the machine's last selfcheck found, where the environment has it."""
    facts = environment.get("selfcheck")
    try:
        return _SELFCHECK.validate_python(dict(facts)) if facts else None
    except ValidationError:
        return None


def noise_of(environment: Environment) -> float:
    """The smallest change that this machine's last selfcheck found, as a share; 0 where it was never checked."""
    facts = selfcheck_of(environment)
    if facts is None:
        return 0.0
    return _SEES_NOTHING if facts.detects is None else facts.detects


def require_comparable(base: Side, head: Side, pairs: Sequence[Pair], *, across_hosts: bool) -> None:
    """Refuse recorded numbers of different machines or devices, those of each case, unless that was asked for."""
    if across_hosts or base is head:
        return
    both = f"{base.label} and {head.label}"
    advice = "measure both on one machine, or give --across-hosts to compare them all the same"
    several = base.run.environments or head.run.environments
    if not several:
        _require_same_machine(both, base.run.header.environment, head.run.header.environment, advice)
    for pair in pairs:
        first, second = base.run.environment_of(pair.both[0]), head.run.environment_of(pair.both[1])
        if several:
            what = f"the two sides of {pair.name} ({both})"
            _require_same_machine(what, first, second, f"{advice}; --filter chooses cases")
        devices = [environment.get("devices", {}).get(pair.case.device, "") for environment in (first, second)]
        if devices[0] != devices[1]:
            raise UsageError(
                f"device {pair.case.device} was {devices[0] or 'not there'} in {base.label} and "
                f"{devices[1] or 'not there'} in {head.label}; {advice}"
            )


def _require_same_machine(what: str, base: Environment, head: Environment, advice: str) -> None:
    ids = [machine_id(environment) for environment in (base, head)]
    if "" in ids:
        raise UsageError(f"whether {what} were measured on one machine is not known; {advice}")
    if ids[0] != ids[1]:
        said = "; ".join(describe_machine(environment) for environment in (base, head))
        raise UsageError(f"{what} were measured on different machines ({said}); {advice}")
