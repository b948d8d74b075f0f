"""The files of a results folder: read up to a limit, checked, hashed, and written whole.

Nothing trusts how long a line is: no more than a limit ever comes into memory. finished.json has the hash of every
file but those in tables/, which are made of the others, so that a change is seen years later:

    {"finished": "2026-11-21T04:59:10+00:00", "files": {"run.json": {"sha256": "...", "bytes": 29829}, ...}}
"""

import contextlib
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, TypeVar

from filelock import Timeout
from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import from_json

from harness.errors import RunError
from harness.scratch import scratch_folder
from harness.text import shown

# A record of the largest suites that were run takes some kilobytes; a header of 100,000 cases takes about 150 MB.
LINE_LIMIT_BYTES = 64 * 2**20
DOCUMENT_LIMIT_BYTES = 256 * 2**20
FINISHED_FILE = "finished.json"
TURNS_FILE = "rounds.jsonl"
LOGS_FOLDER = "logs"
TABLES_FOLDER = "tables"
STAGING_PREFIX = ".copying-"
# Of the folder itself, its logs or its tables; a later harness may have files that this one does not know.
_PATH = rf"^(({LOGS_FOLDER}|{TABLES_FOLDER})/)?[A-Za-z0-9_+@,-][A-Za-z0-9._+@,-]{{0,254}}$"

_T = TypeVar("_T")


class NewerSchemaError(RunError):
    """A later harness wrote it."""


# --- Reading and writing ---


@contextlib.contextmanager
def reading(file: Path) -> Iterator[None]:
    """Say in one sentence that a file cannot be read."""
    try:
        yield
    except OSError as error:
        remedy = "correct the path" if isinstance(error, FileNotFoundError) else "mend its permissions"
        raise RunError(f"{file}: cannot be read ({error.strerror}); {remedy}") from None


@contextlib.contextmanager
def writing(path: Path, remedy: str = "make room or mend its permissions, then try again") -> Iterator[None]:
    """Say in one sentence that a path cannot be written, and what helps."""
    try:
        yield
    except Timeout:  # of a lock, which calls itself an OSError
        raise
    except OSError as error:
        raise RunError(f"{path}: cannot be written ({error.strerror}); {remedy}") from error


@contextlib.contextmanager
def staging(parent: Path) -> Iterator[Path]:
    """A new folder under a name that nobody reads; who has filled it renames it, and else it is removed."""
    with scratch_folder(parent, STAGING_PREFIX) as folder:
        folder.chmod(0o755)  # temporary folders are private
        yield folder


def open_plain(file: Path, *, follow: bool = True) -> BinaryIO:
    """Open a plain file to read it; a named pipe would have the reader wait for ever."""
    handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise RunError(f"{file}: is no plain file; take it away, or take the file from a backup")
    return os.fdopen(handle, "rb")


def read_lines(file: Path, limit_bytes: int = LINE_LIMIT_BYTES) -> Iterator[bytes]:
    r"""The lines of a file without their ends; what follows the last `\n` was cut short and is left out."""
    number = 0
    with reading(file), open_plain(file) as stream:
        while line := stream.readline(limit_bytes + 1):
            number += 1
            if line.endswith(b"\n"):
                yield line[:-1]
            elif len(line) > limit_bytes:
                raise RunError(
                    f"{file}: line {number} is longer than {limit_bytes / 2**20:g} MiB, which no record is; "
                    "take the file from a backup"
                )


def read_document(file: Path, limit_bytes: int = DOCUMENT_LIMIT_BYTES) -> bytes:
    """All of a file that is one document, such as run.json."""
    with reading(file), open_plain(file) as stream:
        content = stream.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        limit = f"{limit_bytes / 2**20:g} MiB"
        raise RunError(f"{file}: is larger than {limit}, which no such file is; take it from a backup")
    return content


def ends_in_newline(file: Path) -> bool:
    """Whether a file's last line is whole; an empty file has none that is not."""
    with reading(file), open_plain(file) as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(size - 1, 0))
        return stream.read(1) in (b"", b"\n")


# --- Values ---

_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}


def adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """What reads and writes values of a type as JSON; made when it is needed, since that takes some milliseconds."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def line_of(record: Any) -> bytes:
    """A record as one line of its file, without the line's end; an optional host is left out where there is none."""
    without: set[str] = set()
    if getattr(type(record), "host", None) == "":
        without = {name for name in ("host", "attempt") if not getattr(record, name, True)}
    return adapter(type(record)).dump_json(record, exclude=without)


def parsed(value: Any, kind: type[_T], source: object, remedy: str) -> _T:
    """A value of plain ones, or of JSON as bytes; where it is damaged, what helps is said."""
    try:
        read = adapter(kind).validate_json if isinstance(value, bytes) else adapter(kind).validate_python
        found: _T = read(value)
    except ValidationError as error:
        raise RunError(f"{source}: is damaged ({_first_fault(error)}); {remedy}") from None
    return found


def read_value(file: Path, kind: type[_T], remedy: str) -> _T:
    """A value that is a document of its own."""
    return parsed(read_document(file), kind, file, remedy)


def read_records(file: Path, kind: type[_T], remedy: str) -> list[_T]:
    """The records of a file, a line each, but for a last one that was cut short; of damaged ones is said what helps."""
    if not os.path.lexists(file):  # a link to nothing is no missing file
        return []
    validate = adapter(kind).validate_json
    records: list[_T] = []
    for number, line in enumerate(read_lines(file), start=1):
        try:
            records.append(validate(line))
        except ValidationError as error:  # no context of its own a line: there are millions of lines
            raise RunError(f"{file}: line {number} is damaged ({_first_fault(error)}); {remedy}") from None
    return records


def parse_versioned(
    content: str | bytes,
    kind: type[_T],
    version: int,
    source: object,
    remedy: str,
    fields: Callable[[Mapping[str, Any]], Any] = dict,
) -> _T:
    """The value of a document that says its version, made of these fields of it; a later harness's is refused."""
    try:
        document = from_json(content, allow_inf_nan=False)
        found = document["schema_version"]
        if found > version:
            raise NewerSchemaError(f"{source}: has schema {found}, and this harness reads {version}; upgrade it")
        values = fields(document)
    except (ValueError, LookupError, TypeError):
        raise RunError(f"{source}: is damaged; {remedy}") from None
    return parsed(values, kind, source, remedy)


def _first_fault(error: ValidationError) -> str:
    """The first of what is wrong with a value: where, and what."""
    detail = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in detail["loc"])
    what = detail["msg"].replace(" at line 1 column ", " at column ")  # of what is one line of the file
    return shown(f"{where}: {what}" if where else what)


# --- What a finished folder says of its files ---


@dataclass(frozen=True, kw_only=True)
class FileRecord:
    """One file as it was when its folder was finished."""

    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    bytes: Annotated[int, Field(ge=0)]


@dataclass(frozen=True)
class _Finished:
    files: dict[Annotated[str, Field(pattern=_PATH)], FileRecord]


LogKind = Literal["stderr", "plugins"]
_LONGEST_LOG_NAME = 200


def log_path(case: str, kind: LogKind = "stderr") -> str:
    """Where a run's folder keeps what tools, or only the rewrites of plugins, printed for a case."""
    name = re.sub(r"[^A-Za-z0-9._+@-]", ",", case)
    if len(name) > _LONGEST_LOG_NAME:  # than file systems take
        name = f"{name[:_LONGEST_LOG_NAME]}-{hashlib.sha256(case.encode()).hexdigest()[:12]}"
    return f"{LOGS_FOLDER}/{name}.{kind}.txt"


def describe_file(file: Path) -> FileRecord:
    """Hash and size of a file, whatever its size."""
    digest, size = hashlib.sha256(), 0
    with reading(file), open_plain(file, follow=False) as stream:
        while chunk := stream.read(2**20):
            digest.update(chunk)
            size += len(chunk)
    return FileRecord(sha256=digest.hexdigest(), bytes=size)


def describe_folder(folder: Path, names: Iterable[str]) -> dict[str, FileRecord]:
    """Those of a folder's plain files that have these names, and its logs, by their paths in it."""
    logs = sorted((folder / LOGS_FOLDER).glob("*.txt"))
    files = [*(folder / name for name in names if name != FINISHED_FILE), *logs]
    return {
        file.relative_to(folder).as_posix(): describe_file(file)
        for file in files
        if file.is_file() and not file.is_symlink()
    }


def finished_document(files: Mapping[str, FileRecord]) -> bytes:
    """What finished.json says."""
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return json.dumps({"finished": now, "files": {name: asdict(record) for name, record in files.items()}}).encode()


def read_manifest(folder: Path) -> dict[str, FileRecord] | None:
    """The files of a finished folder; None where it has no finished.json."""
    file = folder / FINISHED_FILE
    return read_value(file, _Finished, "take it from a backup").files if file.is_file() else None
