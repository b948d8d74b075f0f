"""`harness results merge`: finished runs and comparisons of other machines, each copied whole or refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.errors import RunError, UsageError
from harness.history.index import require_own
from harness.progress import Progress
from harness.store.address import is_url, without_password
from harness.store.check import check_folder, why_not_mergeable
from harness.store.folders import kind_of, look_into
from harness.store.merge_history import merge_history
from harness.store.place import Place, open_place
from harness.store.run_directory import require_writable
from harness.store.transfer import require_size
from harness.store.values import Fate, Outcome
from harness.text import shown


def merge(sources: Sequence[str], into: str, progress: Progress) -> list[Outcome]:
    """Copy finished folders of several places into one.

    What cannot be read is refused and told; everything else is merged all the same.

    Args:
        sources: Results folders, or one run's or comparison's folder; paths or URLs of fsspec.
        into: A results folder, made where it is not there.

    Raises:
        HarnessError: The target cannot be used.
    """
    target = open_place(into)
    if not is_url(into):
        require_own(target.local)
        require_writable(target.local)
    return [outcome for source in sources for outcome in _merge_place(source, target, progress)]


def _merge_place(source: str, target: Place, progress: Progress) -> Iterator[Outcome]:
    try:
        place, names, whole = _folders_of(source)
        if place.local.resolve() == target.local.resolve():
            raise UsageError(f"{place.address}: is the folder that is merged into; give another")
    except (RunError, UsageError) as error:
        yield Outcome(name="-", source=without_password(shown(source)), fate="refused", why=str(error))
        return
    progress.stage(f"Merging {shown(place.address)}", len(names))
    told = set()
    for name in names:
        yield _merge_folder(name, place, target)
        told.add(name)
        progress.step(name)
    if not whole:
        return
    others = [
        Outcome(name=shown(name), source=place.address, fate="refused", why=place.refused[name])
        for name in sorted(place.refused.keys() - told)
    ]
    others += merge_history(place, target)
    yield from others
    if not names and not others:
        yield Outcome(name="-", source=place.address, fate="left out", why="there is no run and no comparison in it")


def _folders_of(source: str) -> tuple[Place, list[str], bool]:
    """A place, its folders, and whether all of it is meant; of one run's own folder, where it lies and its name."""
    if not is_url(source):
        path = Path(source).absolute()
        if path.is_dir() and kind_of({entry.name for entry in path.iterdir()}) is not None:
            return open_place(str(path.parent)), [path.name], False
    place = open_place(source)
    return place, place.names(), True


def _merge_folder(name: str, place: Place, target: Place) -> Outcome:
    """Copy a folder, look at the copy, which nobody else can change, and only then give it its name."""

    def outcome(fate: Fate, why: str = "") -> Outcome:
        return Outcome(name=shown(name), source=place.address, fate=fate, why=why)

    remarks: list[str] = []

    def check(copy: Path) -> None:
        finding = check_folder(copy, name=name)
        why = finding.why.replace(str(copy), str(folder))
        if finding.state != "ok":
            raise RunError(why)
        remarks.append(why)

    try:
        place.fetch([name])
        if name in place.refused:
            return outcome("refused", place.refused[name])
        folder = place.local / name
        contents = look_into(folder)
        if (reason := why_not_mergeable(contents, name)) is not None:
            return outcome("left out", reason)
        require_size(folder, contents)
        copied = target.put(folder, check)
    except RunError as error:
        return outcome("refused", str(error))
    if not copied:
        return outcome("already there")
    not_copied = f"without {contents.beside}, which no run has" if contents.unknown else ""
    return outcome("copied", "; ".join(part for part in (*remarks, not_copied) if part))
