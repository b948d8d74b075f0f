"""Places that results lie at: a local folder, or any URL that fsspec reads; nobody ever sees half of a copy.

Folders behind a URL are mirrored into the cache folder, each fetched once and as a whole. A listing may say anything:
only names that the harness gives are let through.
"""

import contextlib
import hashlib
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from harness.cache import cache_root, held, read_memo, write_memo
from harness.errors import HarnessError, RunError, UsageError
from harness.files import FOLDER_LIMIT_BYTES
from harness.store.files import (
    FINISHED_FILE,
    FileRecord,
    describe_file,
    open_plain,
    reading,
    staging,
    writing,
)
from harness.store.folders import (
    BESIDE,
    COMPARISON,
    EXPLANATION,
    MARKS_FOLDER,
    RUN,
    is_known,
    is_mark_file,
    is_name,
    is_table,
    kind_of,
    look_into,
)
from harness.text import one_line, shown

_CREDENTIALS = re.compile(r"//[^/@]*@")
_LOCK_FILE = ".archive.lock"


def is_url(place: str) -> bool:
    """Whether a place is one of fsspec's, and no path."""
    return "://" in place or "::" in place


def without_password(place: str) -> str:
    """A URL that may be shown."""
    return _CREDENTIALS.sub("//...@", place)


@contextlib.contextmanager
def archive_lock(results: Path) -> Iterator[None]:
    """Be the only process that changes a results folder."""

    def tell() -> None:
        sys.stderr.write(f"Waiting for another harness that changes {results}.\n")

    with contextlib.ExitStack() as stack:
        with writing(results):
            results.mkdir(parents=True, exist_ok=True)
            stack.enter_context(held(results / _LOCK_FILE, tell))
        yield


def _described(folder: Path) -> dict[str, FileRecord]:
    """Hashes and sizes of a folder's files without its tables, which follow from the rest and may not be there yet."""
    return {name: describe_file(folder / name) for name in look_into(folder).known if not is_table(name)}


def _copy_file(source: Path, target: Path) -> None:
    """Copy one plain file; a link that has come to its place meanwhile is refused."""
    with reading(source):
        stream = open_plain(source, follow=False)
    with stream, writing(target):
        target.parent.mkdir(exist_ok=True)
        with target.open("xb") as copy:
            shutil.copyfileobj(stream, copy)


class Place:
    """Where a results folder lies: a folder of this machine, which is read where it lies; a URL has a subclass."""

    def __init__(self, address: str, local: Path) -> None:
        self.address = address  # As the user gave it, without a password
        self.local = local  # The folder that holds the runs; of a URL, a mirror that `fetch` fills
        self.refused: dict[str, str] = {}  # Why folders and files are not read, by name

    def names(self) -> list[str]:
        """Folders of runs and comparisons, finished or not, sorted; those of a URL need not be in the mirror yet."""
        found = []
        try:
            entries = sorted(self.local.iterdir())
        except FileNotFoundError:
            raise UsageError(f"{self.address}: there is no such folder; give one that holds runs") from None
        except OSError as error:
            sentence = f"{self.address}: cannot be listed ({error.strerror}); give a folder that holds runs"
            raise RunError(sentence) from None
        for entry in entries:
            if entry.name.startswith(".") or entry.name in BESIDE or not entry.is_dir():
                continue
            if entry.is_symlink():
                self.refused[entry.name] = "is a symbolic link, which is not followed"
            elif not is_name(entry.name):
                self.refused[entry.name] = f"{shown(entry.name)!r} is no name of a run"
            elif _is_candidate(entry):
                found.append(entry.name)
        return found

    def fetch(self, names: Iterable[str] | None = None) -> None:
        """Bring folders, or the marks, into `local`, if they do not lie there; `refused` says why one is not."""

    def put(self, folder: Path, settle: Callable[[Path], None]) -> bool:
        """Copy a run's or a comparison's folder to this place under its name; False: the same one is there already.

        Its tables stay behind. `settle` looks at the copy, which nobody else can change, and gives it tables.
        """
        contents = look_into(folder)
        if contents.bytes > FOLDER_LIMIT_BYTES:
            raise RunError(f"{folder}: {_too_large(contents.bytes)} copied; look at what is in it")
        target = self.local / folder.name
        with archive_lock(self.local):
            if target.exists() or target.is_symlink():
                if _described(folder) != _described(target):
                    raise RunError(
                        f"{self.address.rstrip('/')}/{folder.name}: is there already with other content; "
                        "compare the two, and rename or delete one"
                    )
                return False
            with writing(target), staging(self.local) as copy:
                names = [name for name in contents.known if not is_table(name)]
                for name in names:
                    _copy_file(folder / name, copy / name)
                settle(copy)
                self.publish(copy, folder.name, names)
                copy.rename(target)
        return True

    def publish(self, folder: Path, name: str, files: Iterable[str]) -> None:
        """Bring files of a folder to where others see it under this name, beyond `local`."""


def _is_candidate(folder: Path) -> bool:
    """Whether a folder may be a run or a comparison, perhaps one that was only begun."""
    try:
        return kind_of({file.name for file in folder.iterdir()}) is not None
    except OSError:
        return True  # reading it says why it cannot be


def _too_large(size: int) -> str:
    return f"is {size / 2**30:,.1f} GiB, and more than {FOLDER_LIMIT_BYTES / 2**30:g} GiB is not"


# --- Behind a URL ---

# These list everything below a prefix at once; others are walked, folder by folder.
_FLAT = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "az", "adl"})
_DEPTH = 3  # <run>/logs/<file>
_SIZES_FILE = ".fetched.json"

# What fsspec says of files, by path in their folder, and of folders by name; a file's own path is its `name`.
_Files = dict[str, dict[str, Any]]


@contextlib.contextmanager
def _explained(address: str, done: str) -> Iterator[None]:
    """Say in one sentence that a place cannot be `done`; file systems of fsspec have exceptions of their own."""
    try:
        yield
    except HarnessError:
        raise
    except Exception as error:
        why = without_password(one_line(f"{type(error).__name__}: {error}"))[:300]
        advice = "check the address, the network and your rights"
        raise RunError(f"{address}: cannot be {done} ({why}); {advice}") from None


class RemotePlace(Place):
    """A results folder behind a URL."""

    def __init__(self, address: str, system: Any, root: str, mirror: Path) -> None:
        super().__init__(address, mirror)
        self._system = system
        self._root = root.rstrip("/")
        self._folders: dict[str, _Files] | None = None

    def names(self) -> list[str]:
        """Folders of runs and comparisons there, as they were when this was first asked."""
        return sorted(self._listing().keys() - {MARKS_FOLDER})

    def fetch(self, names: Iterable[str] | None = None) -> None:
        """Bring folders into the mirror, each as a whole."""
        folders = self._listing()
        with archive_lock(self.local):
            for name in folders if names is None else names:
                if folders.get(name):
                    try:
                        self._fetch_folder(name, folders[name])
                    except RunError as error:  # the others may be sound
                        self.refused[name] = str(error)

    def put(self, folder: Path, settle: Callable[[Path], None]) -> bool:
        """Upload a folder."""
        self._listing(may_be_new=True)
        self.fetch([folder.name])
        if folder.name in self.refused:
            raise RunError(f"{self.address}: {folder.name} is there, but {self.refused[folder.name]}")
        return super().put(folder, settle)

    def _listing(self, *, may_be_new: bool = False) -> dict[str, _Files]:
        if self._folders is None:
            with _explained(self.address, "read"):
                self._system.invalidate_cache()  # listings are kept as long as the process, and a place gains runs
                self._folders = self._listed(may_be_new=may_be_new)
            for folder in self.local.glob("*"):
                if folder.is_dir() and folder.name not in self._folders:
                    shutil.rmtree(folder, ignore_errors=True)
        return self._folders

    def _listed(self, *, may_be_new: bool) -> dict[str, _Files]:
        """The folders there; names that no run of the harness has are refused."""
        system, root = self._system, self._root
        protocols = {system.protocol} if isinstance(system.protocol, str) else set(system.protocol)
        found = system.find(root, maxdepth=None if protocols & _FLAT else _DEPTH, detail=True)
        if not found and not may_be_new and not system.exists(root):
            # Both take a place that does not answer for one that is empty.
            with _explained(self.address, "reached"), contextlib.suppress(FileNotFoundError, NotADirectoryError):
                system.ls(root, detail=False)
            raise RunError(f"{self.address}: there is nothing there; give a folder that holds runs")
        folders: dict[str, _Files] = {}
        for path, info in found.items():
            inner = path.removeprefix(root).lstrip("/")
            name, _, below = (unquote(inner) if protocols & {"http", "https"} else inner).partition("/")
            if is_mark_file(f"{name}/{below}") or (is_name(name) and is_known(below)):
                folders.setdefault(name, {})[below] = {**info, "name": path}
                if info.get("islink"):
                    self.refused[name] = f"{shown(below)} is a symbolic link, which is not followed"
            elif kind_of({below}) is not None and not name.startswith("."):
                self.refused[shown(name)] = f"{shown(name)!r} is no name of a run"
        return {
            name: files
            for name, files in folders.items()
            if name not in self.refused and (name == MARKS_FOLDER or kind_of(files) is not None)
        }

    def _fetch_folder(self, name: str, files: _Files) -> None:
        """Fetch a folder under a name that nobody reads, then move it; a finished one only where it differs."""
        target = self.local / name
        sizes = {path: info.get("size") for path, info in files.items()}
        finished = name == MARKS_FOLDER or kind_of(files) not in (RUN, None) or FINISHED_FILE in files
        if finished and read_memo(target / _SIZES_FILE) == sizes:
            return
        if (size := sum(bytes_ or 0 for bytes_ in sizes.values())) > FOLDER_LIMIT_BYTES:
            raise RunError(f"{self.address}: {name} {_too_large(size)} fetched")
        with writing(target), staging(self.local) as copy:
            for path, info in files.items():
                (copy / path).parent.mkdir(parents=True, exist_ok=True)
                with _explained(self.address, "read"):
                    self._system.get_file(info["name"], str(copy / path))
            write_memo(copy / _SIZES_FILE, sizes)
            if target.exists():
                shutil.rmtree(target)
            copy.rename(target)

    def publish(self, folder: Path, name: str, files: Iterable[str]) -> None:
        """Upload files; what makes the folder a whole one comes last."""
        last = (FINISHED_FILE, COMPARISON.file, EXPLANATION.file)
        with _explained(self.address, "written"):
            for path in sorted(files, key=lambda path: (last.index(path) if path in last else -1, path)):
                remote = f"{self._root}/{name}/{path}".lstrip("/" if not self._root else "")
                self._system.makedirs(remote.rsplit("/", 1)[0], exist_ok=True)
                self._system.put_file(str(folder / path), remote)
        self._listing()[name] = {}  # nothing is left to fetch: the mirror has it


def open_place(place: str, *, mirror: Path | None = None) -> Place:
    """Open a results folder, wherever it is."""
    if not is_url(place):
        return Place(place, Path(place))
    from fsspec.core import url_to_fs

    address = without_password(place)
    with _explained(address, "read"):
        try:
            system, root = url_to_fs(place)
        except (ImportError, ValueError) as error:
            advice = "install what it needs, or give a path or another URL of fsspec (s3://, https://, zip://, ...)"
            raise UsageError(f"{address}: {without_password(one_line(str(error)))}; {advice}") from None
    digest = hashlib.sha256(place.encode()).hexdigest()[:16]
    return RemotePlace(address, system, root, mirror or cache_root() / "places" / digest)
