"""Checks results folders, and merges them: copies what the target does not have, whole or not at all.

`harness results verify` asks whether folders are what they were when they were finished; nothing in them is trusted.

Runs of `harness run --shard` are joined into the run that they are parts of, in which each is a host; alone they would
be nights of which most cases are missing.
"""

import contextlib
import shlex
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from harness.errors import HarnessError, RunError, UsageError
from harness.progress import Progress
from harness.records.run import Header, HostRecord, Placed, Run
from harness.store.evidence import parse_time, utc_text
from harness.store.files import (
    FINISHED_FILE,
    LOGS_FOLDER,
    NewerSchemaError,
    describe_file,
    ends_in_newline,
    read_document,
    read_manifest,
    read_value,
)
from harness.store.folders import (
    EXPLANATION,
    MARKS_FOLDER,
    PUBLISHED_FOLDER,
    RUN,
    Contents,
    is_id,
    is_table,
    kind_of,
    look_into,
)
from harness.store.marks import put_marks, read_marks
from harness.store.place import Place, is_url, open_place, without_password
from harness.store.run_directory import HEADER_FILE, RECORDS, RunDirectory, load_run, new_run_id, require_writable
from harness.store.schema import RowsOf, write_tables
from harness.store.tables import rows_in
from harness.suite.cases import Shard, parse_shard
from harness.text import plural, shown

State = Literal["ok", "unfinished", "damaged", "changed", "future schema", "not a run"]

# What is wrong with a folder, as opposed to what is merely no finished run.
WRONG: frozenset[State] = frozenset({"damaged", "changed", "future schema"})


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a look at one folder showed."""

    name: str
    kind: str  # `run`, `comparison`, `explanation` or `marks`; "" for what is none of these
    # `damaged`: it cannot be read as what it says it is. `changed`: it can, but is not what it was when it was
    # finished.
    state: State
    why: str = ""  # One sentence that names the file; a remark where it is ok


def verify(place: Place, progress: Progress) -> list[Finding]:
    """Look at every run, comparison and explanation, at those in `published/`, and at what was said of them."""
    folders = dict.fromkeys(place.names(), True)
    published = Place(place.address, place.local / PUBLISHED_FOLDER)
    if published.local.is_dir():
        folders |= {f"{PUBLISHED_FOLDER}/{name}": False for name in published.names()}
    named_by_id = place.local.resolve().name != PUBLISHED_FOLDER  # names of published ones are free
    progress.stage("Verifying", len(folders))
    findings = []
    for name, has_id in folders.items():
        if name not in place.refused:
            findings.append(check_folder(place.local / name, name=name, named_by_id=has_id and named_by_id))
        progress.step(shown(name))
    marks = read_marks(place.local)
    if marks.files:
        sound = plural(len(marks.files), "statement")
        findings.append(Finding(name=MARKS_FOLDER, kind="marks", state="ok", why=sound))
    for kind, wrong in (("", {**place.refused, **published.refused}), ("marks", marks.wrong)):
        findings += [Finding(name=name, kind=kind, state="damaged", why=why) for name, why in wrong.items()]
    return findings


def check_folder(folder: Path, *, name: str, named_by_id: bool = True) -> Finding:
    """Look at the folder of a run, a comparison or an explanation."""
    kind = ""
    state: State
    try:
        contents = look_into(folder)
        if contents.kind is None:
            state, why = "not a run", "it has no run, comparison or explanation"
        else:
            kind = contents.kind.name
            kept = contents.kind.load(folder)
            own_id = kept.header.id if isinstance(kept, Run) else kept.id
            if named_by_id and own_id != name:
                state, why = "changed", f"it is {kind} {shown(own_id)} under another name; rename it back"
            elif not contents.finished:
                state, why = "unfinished", f"go on with it: harness run --resume {shlex.quote(str(folder))}"
            else:
                state, why = _state_of_files(folder, contents, kind)
    except NewerSchemaError as error:
        state, why = "future schema", str(error)
    except RunError as error:
        state, why = "damaged", str(error)
    return Finding(name=name, kind=kind, state=state, why=why)


def _state_of_files(folder: Path, contents: Contents, kind: str) -> tuple[State, str]:
    """A finished folder's files beside their hashes; its tables have none, since they are made of the others."""
    for path in contents.known:
        if path.endswith(".jsonl") and not ends_in_newline(folder / path):
            return "damaged", f"{folder / path}: its last line is cut short; take it from a backup"
    manifest = read_manifest(folder) or {}
    for path, record in manifest.items():
        file = folder / path
        if is_table(path):
            continue
        if not file.is_file() or file.is_symlink():
            return "damaged", f"{file}: is gone; take it from a backup"
        if describe_file(file) != record:
            return "changed", f"{file}: is not as it was when the {kind} was finished"
    for path in contents.known:
        if path not in manifest and path != FINISHED_FILE and not is_table(path):
            return "changed", f"{folder / path}: was not there when the {kind} was finished"
    return "ok", ""


# --- Merging ---

Fate = Literal["copied", "joined", "already there", "left out", "refused"]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one folder in a merge."""

    name: str
    source: str  # The place it is from
    fate: Fate
    why: str = ""  # Why it was left out or refused; a remark where it was copied; what it was joined to


def merge(
    sources: Sequence[str], into: str, rows_of: RowsOf, report_of: Callable[[Run], str], progress: Progress
) -> list[Outcome]:
    """Copy finished folders of several places into one, and join shards."""
    merging = _Merge(open_place(into), rows_of, progress)
    if not is_url(into):
        require_writable(merging.target.local, "choose another folder with --into")
    for source in sources:
        merging.take_place(source)
    for suite in dict.fromkeys(shard.header.suite_name for shard in merging.shards):
        merging.join([shard for shard in merging.shards if shard.header.suite_name == suite], report_of)
    return merging.outcomes


@dataclass(frozen=True, kw_only=True)
class _ShardRun:
    """A finished run of one shard, which was checked."""

    source: str
    folder: Path
    run: Run
    shard: Shard

    @property
    def header(self) -> Header:
        return self.run.header

    @property
    def name(self) -> str:
        """What messages call it: where it was found."""
        return f"{self.source}/{self.folder.name}"


class _Merge:
    """What is merged into one place, and what became of each folder so far."""

    def __init__(self, target: Place, rows_of: RowsOf, progress: Progress) -> None:
        self.target, self._rows_of, self._progress = target, rows_of, progress
        self.outcomes: list[Outcome] = []
        self.shards: list[_ShardRun] = []

    def _say(self, name: str, source: str, fate: Fate, why: str = "") -> None:
        self.outcomes.append(Outcome(name=shown(name), source=source, fate=fate, why=why))

    @contextlib.contextmanager
    def _refusing(self, name: str, source: str) -> Iterator[None]:
        """What goes wrong with one folder costs no other."""
        try:
            yield
        except HarnessError as error:
            self._say(name, source, "refused", str(error))

    def take_place(self, source: str) -> None:
        """Take in what a place holds, or one run by its own folder."""
        with self._refusing("-", without_password(shown(source))):
            place, names, whole = _folders_of(source)
            if place.local.resolve() == self.target.local.resolve():
                raise UsageError(f"{place.address}: is the folder that is merged into; give another")
            self._progress.stage(f"Merging {shown(place.address)}", len(names))
            for name in names:
                with self._refusing(name, place.address):
                    self._take_folder(place, name)
                self._progress.step(name)
            if whole:
                before = len(self.outcomes)
                for name in sorted(place.refused.keys() - set(names)):
                    self._say(name, place.address, "refused", place.refused[name])
                self._take_marks(place)
                if not names and len(self.outcomes) == before:
                    self._say("-", place.address, "left out", "there is no run and no comparison in it")

    def _take_folder(self, place: Place, name: str) -> None:
        """Copy a folder, look at the copy, which nobody else can change, and only then give it its name."""
        folder = place.local / name
        place.fetch([name])
        if name in place.refused:
            raise RunError(place.refused[name])
        contents = look_into(folder)
        if not is_id(name):
            why = f"{shown(name)!r} is no id of a run; rename it to the id that its {HEADER_FILE} has"
            self._say(name, place.address, "left out", why)
        elif not contents.finished:
            why = "is not finished; go on with it where it was made, with harness run --resume"
            self._say(name, place.address, "left out", why)
        elif contents.kind is RUN and _is_shard(folder):
            self.shards.append(_shard_run(place.address, folder))
        else:
            self._say(name, place.address, "copied" if self._put(folder) else "already there")

    def _put(self, folder: Path) -> bool:
        def settle(copy: Path) -> None:
            """Refuse a folder that is not what a harness leaves behind; else make its tables, of its records."""
            finding = check_folder(copy, name=folder.name)
            if finding.state != "ok":
                raise RunError(finding.why.replace(str(copy), str(folder)))
            if not EXPLANATION.is_at(copy):  # of which no table has rows
                write_tables(copy, rows_in(copy, self._rows_of)[1])

        return self.target.put(folder, settle)

    def _take_marks(self, place: Place) -> None:
        """Copy statements about runs and changes that are not there yet; their names tell equal ones."""
        place.fetch([MARKS_FOLDER])
        marks = read_marks(place.local)
        for name, why in marks.wrong.items():
            self._say(name, place.address, "refused", why)
        if marks.files:
            self.target.fetch([MARKS_FOLDER])
            there = read_marks(self.target.local).files
            new = {name: content for name, content in marks.files.items() if name not in there}
            put_marks(self.target, new)
            if new:
                why = f"{plural(len(new), 'statement')} about runs and changes"
                self._say(f"{MARKS_FOLDER}/", place.address, "copied", why)

    def join(self, shards: Sequence[_ShardRun], report_of: Callable[[Run], str]) -> None:
        """Join the shards of a suite, and copy the run that they are."""
        name, why = "", ""
        fate: Fate = "refused"
        try:
            run = _joined(shards)
            name, fate = run.header.id, "copied" if self._put_joined(run, shards, report_of) else "already there"
        except HarnessError as error:
            name, why = "", str(error)
        for shard in shards:
            of_run = f"shard {shard.shard} of {name or 'a run that is not joined'}"
            self._say(shard.folder.name, shard.source, "joined" if name else "left out", of_run)
        source = f"{'joined from ' if name else ''}{plural(len(shards), 'shard')}"
        self._say(name or shards[0].header.suite_name, source, fate, why)

    def _put_joined(self, run: Run, shards: Sequence[_ShardRun], report_of: Callable[[Run], str]) -> bool:
        """Copy a joined run; False: it is there already, though its files tell another time of joining."""
        with tempfile.TemporaryDirectory(prefix="harness-shards-") as scratch:
            with RunDirectory.create(Path(scratch), run.header) as directory:
                for field in RECORDS:
                    for record in getattr(run, field):
                        directory.append(record)
                for log in (log for shard in shards for log in sorted((shard.folder / LOGS_FOLDER).glob("*.txt"))):
                    directory.write(f"{LOGS_FOLDER}/{log.name}", read_document(log))
                directory.finish(report_of)
            try:
                return self._put(directory.path)
            except RunError:
                there = self.target.local / run.header.id
                if (there / HEADER_FILE).is_file() and load_run(there, rounds=False).header == run.header:
                    return False
                raise


def _folders_of(source: str) -> tuple[Place, list[str], bool]:
    """A place, its folders, and whether all of it is meant; of one run's own folder, where it lies and its name."""
    path = Path(source).absolute()
    if not is_url(source) and path.is_dir() and kind_of({entry.name for entry in path.iterdir()}) is not None:
        return open_place(str(path.parent)), [path.name], False
    place = open_place(source)
    return place, place.names(), True


# --- Shards ---

_ADVICE = "give all shards of one run, each once, in one command"
# Of a run's settings, those that change nothing of what is measured, and those that tell shards apart.
_OWN_SETTINGS = ("jobs", "keep_going", "skip", "shard")


def _is_shard(folder: Path) -> bool:
    """Whether a run says that it is a shard; what cannot be read is none, and is refused as a run."""
    with contextlib.suppress(RunError):
        return bool(read_value(folder / HEADER_FILE, Header, "").settings.get("shard"))
    return False


def _shard_run(source: str, folder: Path) -> _ShardRun:
    finding = check_folder(folder, name=folder.name)
    if finding.state != "ok":
        raise RunError(finding.why)
    run = load_run(folder)
    if run.hosts or parse_time(run.header.started) is None:
        raise RunError(f"{folder}: has several hosts or no time of its start, and such a shard is not joined")
    return _ShardRun(source=source, folder=folder, run=run, shard=parse_shard(str(run.header.settings["shard"])))


def _joined(shards: Sequence[_ShardRun]) -> Run:
    """The run that these are all shards of, with the name and the settings of the first one to begin."""
    _require_one_run(shards)
    shards = sorted(shards, key=lambda known: known.shard.number)
    hosts = {f"shard-{shard.shard.number}": shard for shard in shards if shard.header.cases}
    cases = [(case, host) for host, shard in hosts.items() for case in shard.header.cases]
    first = min(shards, key=lambda known: utc_text(known.header.started)).header
    begun = parse_time(first.started)
    assert begun is not None  # noqa: S101 (else it was refused)

    def every(field: str) -> tuple[Any, ...]:
        return tuple(record for shard in shards for record in getattr(shard.run, field))

    def hosted(field: str) -> tuple[Any, ...]:
        return tuple(
            replace(record, host=host) for host, shard in hosts.items() for record in getattr(shard.run, field)
        )

    words = [word for word in first.command if not word.startswith("--shard=")]
    if "--shard" in words:
        place = words.index("--shard")
        del words[place : place + 2]
    settings = {key: value for key, value in first.settings.items() if key not in _OWN_SETTINGS}
    header = replace(
        first,
        id=f"{new_run_id(first.suite_name, begun)}-joined",
        command=tuple(words),
        cases=tuple(case for case, _ in cases),
        models=tuple({model.name: model for shard in shards for model in shard.header.models}.values()),
        settings={**settings, "joined_from": [shard.header.id for shard in shards]},
        environment={},
    )
    return Run(
        header=header,
        finished=True,
        hosts=tuple(HostRecord(name=host, environment=shard.header.environment) for host, shard in hosts.items()),
        placed=tuple(
            Placed(group=group, host=host) for group, host in {case.group: host for case, host in cases}.items()
        ),
        **{field: every(field) for field in ("builds", "ir", "checks", "references", "work")},
        **{field: hosted(field) for field in ("rounds", "lost", "peaks")},
    )


def _require_one_run(shards: Sequence[_ShardRun]) -> None:
    """Refuse shards that do not belong together, and some of a run without the others."""
    first, facts = shards[0], _facts(shards[0])
    for other in shards[1:]:
        for what, theirs in _facts(other).items():
            if theirs != facts.get(what):
                raise RunError(
                    f"{other.name} is not of the same run as {first.name}: their {what} differ "
                    f"({shown(str(facts.get(what)))[:80]}; {shown(str(theirs))[:80]}); {_ADVICE}"
                )
    numbers, count = Counter(shard.shard.number for shard in shards), first.shard.count
    if twice := [shard.name for shard in shards if numbers[shard.shard.number] > 1]:
        raise RunError(f"{twice[0]} and {twice[1]} are the same shard; {_ADVICE}")
    missing = [f"{number}/{count}" for number in range(1, count + 1) if number not in numbers]
    if missing:
        raise RunError(f"these shards are missing: {', '.join(missing)[:200]}; {_ADVICE}")
    groups = Counter(group for shard in shards for group in {case.group for case in shard.header.cases})
    if max(groups.values(), default=1) > 1:
        raise RunError(f"{first.name}: its shards have a group twice; run them again")


def _facts(shard: _ShardRun) -> dict[str, object]:
    """What all shards of a run have in common, each under its name in a sentence; the most telling first."""
    header = shard.header
    settings = {f"settings {key}": value for key, value in header.settings.items() if key not in _OWN_SETTINGS}
    return {
        "numbers of shards": shard.shard.count,
        "suite files": header.suite_sha256,
        "releases of IREE": [(known.version, known.compiler_sha256) for known in header.toolchains],
        "versions of the harness": f"{header.harness_version} {header.harness_commit}",
        **settings,
    }
