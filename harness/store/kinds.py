"""The kinds of results, a line each: what makes a folder one, in which version it is kept, and how it is read.

Who adds a kind adds it to `KINDS`, to the forms of harness.report and, where there are pictures of it, to those of
harness.plots.pictures.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from pydantic import ValidationError

from harness.errors import RunError
from harness.records.bisection import Bisection
from harness.records.comparison import Comparison
from harness.records.explanation import Explanation
from harness.records.run import SCHEMA_VERSION, Run
from harness.records.tuning import Tuning
from harness.store.files import DROPPED_FILE, FINISHED_FILE, TURNS_FILE, adapter, read_document, require_schema
from harness.store.journal import REPORT_FILE
from harness.store.run_directory import HEADER_FILE, file_names, load_run

KindName = Literal["run", "comparison", "explanation", "bisect", "tuning"]
Result = Run | Comparison | Explanation | Bisection | Tuning
COMPILES_FILE = "compiles.jsonl"
# Folders of a results folder or of an out folder, and theirs: `tuned/rdb@cpu`, `results/tuned/rdb@cpu`.
_PLACES_OF_TUNINGS = (".", "*", "*/*")

_T = TypeVar("_T")

# A suite's names have at most 100 characters each, of which a case's has three, and its release.
_NAMES = frozenset(
    (
        "case",
        "model",
        "variant",
        "device",
        "metric",
        "unit",
        "verdict",
        "gate",
        "name",
        "suite",
        "variants",
        "commit",
        "subject",
        "operation",
        "explanation",
    )
)
_LONGEST_NAME = 4_000
# A flag may be a pass pipeline, and a tool's output is cut at 4,000 characters.
_LONGEST_TEXT = 100_000


def _fields(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "schema_version"}


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[_T]):
    """A kind of results, each in a folder of its own."""

    name: KindName
    phrase: str  # `an explanation`
    value: type[_T]
    file: str  # A folder that has it is a whole one
    version: int  # Of what is in it. Raised when a name changes its meaning or goes away; new names may appear without
    command: str  # `harness <command>` makes it
    begun_file: str = ""  # With which the command goes on
    files: tuple[str, ...] = ()  # All that a finished one may have; (): it stays where it was made
    again: str = ""  # What helps where it is damaged
    unended: str = ""  # What is said of one that was begun and has no answer yet; `{path}` is its folder
    fields: Callable[[Mapping[str, Any]], dict[str, Any]] = _fields  # Of the value, from the document
    longest_text: int = _LONGEST_TEXT

    def is_at(self, folder: Path) -> bool:
        """Whether a folder is one that has come to its end (of a run: one that was begun)."""
        return (folder / self.file).is_file()

    def load(self, folder: Path) -> _T:
        """Read what a folder holds."""
        return self.parse(read_document(folder / self.file), str(folder / self.file))

    def parse(self, content: str | bytes, source: str = "") -> _T:
        """The value of a document as it was kept."""
        source = source or self.file
        document = _parse_document(
            content, source, what=self.name, version=self.version, longest_text=self.longest_text
        )
        try:
            value: _T = adapter(self.value).validate_python(self.fields(document))
        except (ValidationError, TypeError, AttributeError, LookupError) as error:
            where = ".".join(map(str, error.errors()[0]["loc"])) if isinstance(error, ValidationError) else "its rows"
            raise RunError(f"{source}: is damaged at {where}; {self.again}") from None
        return value


class _RunKind(Kind[Run]):
    def load(self, folder: Path) -> Run:
        """Read a run directory, finished or not."""
        return load_run(folder)


# Numbers that a comparison needs and JSON may have lost, since it has neither NaN nor infinities.
_NEEDED = {"rows": ("floor", "seconds"), "means": ("ratio",)}
_NEEDED_OF_SELFCHECK = ("upper_bound", "seconds")


def _fields_of_comparison(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with NaN where a needed number was none, and each tool's output back in its row."""
    kept = {key: value for key, value in document.items() if key not in ("schema_version", "tool_output")}
    for key, names in _NEEDED.items():
        kept[key] = [_filled(record, names) for record in kept[key]]
    for output in document.get("tool_output", ()):
        kept["rows"][output["row"]]["stderr"] = output["stderr"]
    machine = dict(kept["machine"])
    if machine.get("selfcheck"):
        machine["selfcheck"] = _filled(machine["selfcheck"], _NEEDED_OF_SELFCHECK)
    return {**kept, "machine": machine}


def _filled(record: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    lost = {name: math.nan for name in names if name in record and record[name] is None}
    return {**record, **lost}


RUN: Kind[Run] = _RunKind(
    name="run",
    phrase="a run",
    value=Run,
    file=HEADER_FILE,
    version=SCHEMA_VERSION,
    command="run",
    files=file_names(),
)
COMPARISON = Kind(
    name="comparison",
    phrase="a comparison",
    value=Comparison,
    file="comparison.json",
    version=1,
    command="compare",
    begun_file="unfinished.json",
    files=("comparison.json", TURNS_FILE, COMPILES_FILE, REPORT_FILE, FINISHED_FILE, DROPPED_FILE),
    again="make the comparison again",
    unended="{path}: this comparison has not come to its end; go on with `harness compare --resume {path}`",
    fields=_fields_of_comparison,
)
EXPLANATION = Kind(
    name="explanation",
    phrase="an explanation",
    value=Explanation,
    file="explanation.json",
    version=1,
    command="explain",
    begun_file="unfinished-explanation.json",
    files=("explanation.json", REPORT_FILE, FINISHED_FILE),
    again="make the explanation again",
    unended="{path}: this explanation has not come to its end; go on with `harness explain --resume {path}`",
)
BISECT = Kind(
    name="bisect",
    phrase="a bisect",
    value=Bisection,
    file="bisection.json",
    version=1,
    command="bisect",
    begun_file="begun.json",
    again="make the bisect again",
    unended="{path}: this bisect has not come to its end; go on with `harness bisect --resume {path}`",
)
TUNING = Kind(
    name="tuning",
    phrase="a tuning",
    value=Tuning,
    file="tuning.json",
    version=1,
    command="tune",
    begun_file="tuning-begun.json",
    again="call `harness tune` with the same --out again",
    unended="{path}: this search has not come to its end; call `harness tune` as before, and it goes on",
    longest_text=4_000_000,  # a spec holds each operation as text, and a model may have many
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
        if kind.unended and (path / kind.begun_file).is_file():
            raise RunError(kind.unended.format(path=path))
    if tunings := tunings_in(path):
        raise RunError(f"{path}: is a folder of tunings; give one of them: {', '.join(map(str, tunings))}")
    return load_run(path)  # which says why it is none


def tunings_in(place: Path) -> list[Path]:
    """The searches that have come to their end in a folder, or in a folder of that: of a results or an out folder."""
    return sorted({file.parent for pattern in _PLACES_OF_TUNINGS for file in place.glob(f"{pattern}/{TUNING.file}")})


# --- Documents, as far as they can be checked without knowing their fields ---


def _parse_document(content: str | bytes, source: str, *, what: str, version: int, longest_text: int) -> dict[str, Any]:
    """The fields of a document, `schema_version` among them."""
    again = f"make the {what} again"
    try:
        text = content if isinstance(content, str) else content.decode()
        document = json.loads(text)
        longest = _too_long(document, longest_text)
    except RecursionError:
        raise RunError(f"{source}: is damaged (nested too deep); {again}") from None
    except ValueError as error:
        raise RunError(f"{source}: is not JSON ({error}); {again}") from None
    if longest:
        raise RunError(f"{source}: is damaged ({longest}); {again}")
    if _has_half_a_pair(text, document):
        raise RunError(f"{source}: is damaged (half a surrogate pair); {again}")
    found = document.get("schema_version") if isinstance(document, dict) else None
    require_schema(found, source, version)
    if found != version or not isinstance(document, dict):
        raise RunError(
            f"{source}: is no {what} of schema version {version}, the one that this harness reads; read it with the "
            f"harness that wrote it, or {again}"
        )
    return document


def _too_long(value: Any, longest_text: int, key: str = "") -> str:
    """A text of it that is longer than any that a harness writes; "" where there is none.

    A name is written many times into each report, and looked through for what has to be escaped there.
    """
    if isinstance(value, str):
        longest = _LONGEST_NAME if key in _NAMES else longest_text
        return f"{key or 'a text'} of {len(value):,} characters" if len(value) > longest else ""
    if isinstance(value, dict):
        names = next((f"a key of {len(name):,} characters" for name in value if len(name) > _LONGEST_NAME), "")
        return names or next(
            (found for name, item in value.items() if (found := _too_long(item, longest_text, name))), ""
        )
    if isinstance(value, list):
        return next((found for item in value if (found := _too_long(item, longest_text, key))), "")
    return ""


def _has_half_a_pair(text: str, document: Any) -> bool:
    """Whether text of it cannot be encoded as UTF-8, and so fits no file and no table; JSON's escapes can say it."""
    try:
        text.encode()
        if "\\ud" in text or "\\uD" in text:  # in few documents
            json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
