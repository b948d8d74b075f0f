"""The kinds of results, a line each: what makes a folder one, in which version it is kept, and how it is read.

Who adds a kind adds it to `KINDS`, to the forms of harness.report and, where there are pictures of it, to those of
harness.plots.pictures.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from harness.errors import RunError
from harness.records.bisection import Bisection
from harness.records.comparison import Comparison
from harness.records.explanation import Explanation
from harness.records.run import SCHEMA_VERSION, Run
from harness.records.tuning import Tuning
from harness.store.files import FINISHED_FILE, TURNS_FILE, parse_versioned, read_document
from harness.store.run_directory import FILES, HEADER_FILE, REPORT_FILE, load_run

KindName = Literal["run", "comparison", "explanation", "bisect", "tuning"]
Result = Run | Comparison | Explanation | Bisection | Tuning
# Folders of a results folder or of an out folder, and theirs: `tuned/rdb@cpu`, `results/tuned/rdb@cpu`.
_PLACES_OF_TUNINGS = (".", "*", "*/*")

_T = TypeVar("_T")


def _fields(document: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a value; of a comparison with each tool's output back in its row."""
    for output in document.get("tool_output", ()):
        document["rows"][output["row"]]["stderr"] = output["stderr"]
    return {name: value for name, value in document.items() if name not in ("schema_version", "tool_output")}


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[_T]):
    """A kind of results, each in a folder of its own."""

    name: KindName
    phrase: str  # `an explanation`
    value: type[_T]
    file: str  # A folder that has it is a whole one
    command: str  # `harness <command>` makes it
    version: int = (
        1  # Of what is in it. Raised when a name changes its meaning or goes away; new names may appear without
    )
    begun_file: str = ""  # With which the command goes on
    files: tuple[str, ...] = ()  # All that a finished one may have; (): it stays where it was made
    go_on: str = ""  # How one that was begun goes on, where the command has no --resume
    read: Callable[[Path], _T] | None = None  # A folder of several documents

    def is_at(self, folder: Path) -> bool:
        """Whether a folder is one that has come to its end (of a run: one that was begun)."""
        return (folder / self.file).is_file()

    def load(self, folder: Path) -> _T:
        """Read what a folder holds."""
        if self.read is not None:
            return self.read(folder)
        return self.parse(read_document(folder / self.file), str(folder / self.file))

    def parse(self, content: str | bytes, source: str = "") -> _T:
        """The value of a document as it was kept."""
        remedy = f"make the {self.name} again"
        return parse_versioned(content, self.value, self.version, source or self.file, remedy, _fields)


RUN: Kind[Run] = Kind(
    name="run",
    phrase="a run",
    value=Run,
    file=HEADER_FILE,
    version=SCHEMA_VERSION,
    command="run",
    files=FILES,
    read=load_run,
)
COMPARISON = Kind(
    name="comparison",
    phrase="a comparison",
    value=Comparison,
    file="comparison.json",
    command="compare",
    begun_file="unfinished.json",
    files=("comparison.json", TURNS_FILE, REPORT_FILE, FINISHED_FILE),
)
EXPLANATION = Kind(
    name="explanation",
    phrase="an explanation",
    value=Explanation,
    file="explanation.json",
    command="explain",
    begun_file="unfinished-explanation.json",
    files=("explanation.json", REPORT_FILE, FINISHED_FILE),
)
BISECT = Kind(
    name="bisect",
    phrase="a bisect",
    value=Bisection,
    file="bisection.json",
    command="bisect",
    begun_file="begun.json",
)
TUNING = Kind(
    name="tuning",
    phrase="a tuning",
    value=Tuning,
    file="tuning.json",
    command="tune",
    begun_file="tuning-begun.json",
    go_on="call `harness tune` as before, and it goes on",
)
KINDS: tuple[Kind[Any], ...] = (RUN, COMPARISON, EXPLANATION, BISECT, TUNING)


def kind_at(folder: Path) -> Kind[Any] | None:
    """What a folder holds; None: nothing that has come to its end."""
    return next((kind for kind in reversed(KINDS) if kind.is_at(folder)), None)


def kind_of_value(value: object) -> Kind[Any]:
    """The kind of a result."""
    return next(kind for kind in KINDS if isinstance(value, kind.value))


def load_result(path: Path) -> Result:
    """What a folder holds."""
    for kind in reversed(KINDS):
        if kind.is_at(path):
            found: Result = kind.load(path)
            return found
        if kind.begun_file and (path / kind.begun_file).is_file():
            go_on = kind.go_on or f"go on with `harness {kind.command} --resume {path}`"
            raise RunError(f"{path}: this {kind.name} has not come to its end; {go_on}")
    if tunings := tunings_in(path):
        raise RunError(f"{path}: is a folder of tunings; give one of them: {', '.join(map(str, tunings))}")
    return load_run(path)  # which says why it is none


def tunings_in(place: Path) -> list[Path]:
    """The searches that have come to their end in a folder, or in a folder of that: of a results or an out folder."""
    return sorted({file.parent for pattern in _PLACES_OF_TUNINGS for file in place.glob(f"{pattern}/{TUNING.file}")})
