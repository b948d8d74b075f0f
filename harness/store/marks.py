"""What people say of runs and changes later: statements, each a small file of its own that is written once.

    <results>/marks/20261122-101500-0f3a5c8de1b2c4d6.json      its time, and the beginning of its content's SHA-256

A finished run never changes, so what is said of it lies beside it. A merge copies the statements that are not there
yet, so none is lost in whichever order folders are merged; of two about one thing the later one holds. Runs are left
out by their tags.
"""

import getpass
import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field

from harness.cache import WRITING_PREFIX, write_atomically
from harness.errors import RunError, UsageError
from harness.scratch import sweep
from harness.store.evidence import AHEAD, parse_time
from harness.store.files import parsed, read_document, writing
from harness.store.folders import MARKS_FOLDER, is_mark_file
from harness.store.place import Place
from harness.text import one_line, plural, shown

# A sentence or two, from people.
NOTE_LIMIT = 2_000
_WHO_LIMIT = 100
_NAME_LIMIT = 300
CHANGES_LIMIT = 500
_FILE_LIMIT_BYTES = 2**18
_DIGITS = 16
_TAG = r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$"


def _one_line(text: str) -> str:
    if text != one_line(text):
        raise ValueError("is not one printable line")
    return text


def _time(text: str) -> str:
    if parse_time(text) is None:
        raise ValueError("is no time")
    return text


Line: TypeAlias = Annotated[str, AfterValidator(_one_line)]
Name: TypeAlias = Annotated[Line, Field(max_length=_NAME_LIMIT)]
Time: TypeAlias = Annotated[str, AfterValidator(_time)]  # ISO 8601 in UTC, so that times sort as texts
Tag: TypeAlias = Annotated[str, Field(pattern=_TAG)]


@dataclass(frozen=True, kw_only=True)
class Tagging:
    """That a run has a tag, or has it no longer."""

    run: Name  # The run's id
    tag: Tag
    removed: bool = False
    who: Name = ""  # As they call themselves
    when: Time = ""
    kind: Literal["tag"] = "tag"


@dataclass(frozen=True, kw_only=True)
class MarkedChange:
    """One change of one series, as it was when somebody said something of it."""

    series: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]  # Its id
    direction: Literal["slower", "faster", "more", "less"]
    begin: Time  # Start of the first run in which it may have happened
    end: Time  # Start of the last of them
    # The level after it, divided by that before; None where that was 0
    ratio: Annotated[float | None, Field(gt=0, allow_inf_nan=False)]


@dataclass(frozen=True, kw_only=True)
class Acknowledgement:
    """That somebody knows of a change, or that it is fixed."""

    # Of the change when this was said, see harness.history.events
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{8}$")]
    state: Literal["acknowledged", "fixed", "withdrawn"]  # `withdrawn`: what was said before holds no longer
    note: Annotated[Line, Field(max_length=NOTE_LIMIT)]
    suite: Name  # Its name, for people; so are `case` and `metric`
    case: Name
    metric: Name
    # Of all series in which it was seen, that which stands for it first
    changes: Annotated[tuple[MarkedChange, ...], Field(min_length=1, max_length=CHANGES_LIMIT)]
    who: Name = ""
    when: Time = ""
    kind: Literal["change"] = "change"


Statement: TypeAlias = Tagging | Acknowledgement
_STATEMENT: Any = Statement  # for pydantic


@dataclass(frozen=True, kw_only=True)
class Marks:
    """All statements of a results folder, the earliest first."""

    taggings: tuple[Tagging, ...] = ()  # Those about runs
    acknowledgements: tuple[Acknowledgement, ...] = ()  # Those about changes
    files: Mapping[str, bytes] = field(default_factory=dict)  # What they were read from, by path in the results folder
    wrong: Mapping[str, str] = field(default_factory=dict)  # Why other files are left out, likewise


def read_marks(results: Path) -> Marks:
    """Read the statements of a results folder; a file that cannot be read costs no other."""
    folder, said = results / MARKS_FOLDER, list[Statement]()
    files: dict[str, bytes] = {}
    wrong: dict[str, str] = {}
    if folder.is_symlink():
        why = f"{folder}: is a symbolic link, which is not followed; put what it leads to in its place"
        return Marks(wrong={f"{MARKS_FOLDER}/": why})
    try:
        names = sorted(f"{MARKS_FOLDER}/{file.name}" for file in folder.iterdir())
    except FileNotFoundError:
        return Marks()
    except OSError as error:
        return Marks(wrong={f"{MARKS_FOLDER}/": f"{folder}: cannot be listed ({error.strerror}); mend its permissions"})
    for name in filter(is_mark_file, names):
        try:
            statement, files[name] = _parse_mark(results / name)
            said.append(statement)
        except RunError as error:
            wrong[name] = str(error)
    said.sort(key=lambda statement: statement.when)
    return Marks(
        taggings=tuple(each for each in said if isinstance(each, Tagging)),
        acknowledgements=tuple(each for each in said if isinstance(each, Acknowledgement)),
        files=files,
        wrong=wrong,
    )


def _parse_mark(file: Path) -> tuple[Statement, bytes]:
    """A statement, checked, and the bytes that it was read from."""
    if file.is_symlink():
        raise RunError(f"{file}: is a symbolic link, which is not followed; take it away")
    content = read_document(file, _FILE_LIMIT_BYTES)
    if file.name.rpartition("-")[2] != f"{_digest(content)}.json":
        raise RunError(f"{file}: is not as it was when it was written; take it from a backup, or delete it")
    statement: Statement = parsed(content, _STATEMENT, file, "take it from a backup, or delete it")
    now = datetime.now(timezone.utc)
    if (parse_time(statement.when) or now) > now + AHEAD:
        raise RunError(f"{file}: is from {statement.when[:10]}, which is in the future; delete it, and say it again")
    return statement, content


def write_marks(place: Place, statements: Iterable[Statement], known: Marks) -> None:
    """Add statements to a results folder, made now: later than all that are known there, whatever its clocks say."""
    now = datetime.now(timezone.utc)
    earlier: tuple[Statement, ...] = (*known.taggings, *known.acknowledgements)
    for statement in earlier:
        now = max(now, (parse_time(statement.when) or now) + timedelta(microseconds=1))
    when = now.isoformat(timespec="microseconds")
    files = {}
    for statement in statements:
        content = json.dumps(asdict(replace(statement, when=when)), ensure_ascii=False, indent=1).encode() + b"\n"
        files[f"{MARKS_FOLDER}/{now:%Y%m%d-%H%M%S}-{_digest(content)}.json"] = content
    put_marks(place, files)


def put_marks(place: Place, files: Mapping[str, bytes]) -> None:
    """Write files of statements, by path, where others see them too."""
    for name, content in files.items():
        file = place.local / name
        sweep(file.parent, WRITING_PREFIX)
        with writing(file):
            write_atomically(file, content)
    place.publish(place.local / MARKS_FOLDER, MARKS_FOLDER, [Path(name).name for name in files])


def is_tag(text: str) -> bool:
    """Whether a run can have such a tag."""
    return re.fullmatch(_TAG, text) is not None


def checked_name(who: str | None) -> str:
    """What somebody is called: as they say, else the name of their account."""
    if who is None:
        try:
            return one_line(getpass.getuser())[:_WHO_LIMIT]
        except (OSError, KeyError, ImportError):  # an account without a name, as containers have
            return "somebody"
    if who and who == one_line(who) and len(who) <= _WHO_LIMIT:
        return who
    raise UsageError(f"--who {shown(who)!r} is no name; write a line of at most {_WHO_LIMIT} characters")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


# --- Tags of runs, and which runs are left out by their tags ---

# That a run has from its beginning which another command than `harness run` made.
EXPERIMENT = "experiment"


@dataclass(frozen=True, kw_only=True)
class RunChoice:
    """Which runs are asked: without options all that have not the tag `experiment`."""

    everything: bool = False  # Those too
    leave_out: tuple[str, ...] = ()  # Not those with one of these tags
    only: tuple[str, ...] = ()  # Only those with one of these tags, experiments too


WITHOUT_EXPERIMENTS = RunChoice()


def tags_of(born: Iterable[tuple[str, str, str]], taggings: Iterable[Tagging]) -> list[Tagging]:
    """All tags that runs have, sorted; those that a run has from its beginning are of the command that made it."""
    tags = {
        (run, EXPERIMENT): Tagging(run=run, tag=EXPERIMENT, who=f"harness {purpose}", when=started)
        for run, purpose, started in born
    }
    for said in taggings:
        tags[said.run, said.tag] = said
    return [tags[key] for key in sorted(tags) if not tags[key].removed]


def choose_runs(choice: RunChoice, runs: Collection[str], tags: Sequence[Tagging]) -> tuple[list[str], list[str]]:
    """Runs that are left out, and why, a sentence for each tag."""
    having: dict[str, set[str]] = {name: set() for name in (EXPERIMENT, *choice.only, *choice.leave_out)}
    for tag in tags:
        if tag.run in runs:
            having.setdefault(tag.tag, set()).add(tag.run)
    notes = [
        f"No run here has the tag {shown(name)}; `harness results list` shows the tags."
        for name in (*choice.only, *choice.leave_out)
        if not having[name]
    ]
    left: set[str] = set()
    if choice.only:
        left = set(runs) - {run for name in choice.only for run in having[name]}
        names = " or ".join(map(shown, choice.only))
        notes.append(f"Only runs with the tag {names} are read: {len(runs) - len(left):,} of {len(runs):,}.")
    by_default = () if choice.everything or choice.only else (EXPERIMENT,)
    for name in dict.fromkeys((*by_default, *choice.leave_out)):
        if having[name] - left:
            left |= having[name]
            count = len(having[name])
            takes_in = f"; --all takes {'it' if count == 1 else 'them'} in" if name in by_default else ""
            verb = "is" if count == 1 else "are"
            notes.append(f"{plural(count, 'run')} with the tag {shown(name)} {verb} left out{takes_in}.")
    return sorted(left), notes
