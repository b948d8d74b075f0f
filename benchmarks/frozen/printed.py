"""Text and files of a call, without what cannot repeat.

The rules:

1. The call's folder, its cache and the harness's folder become <work>, <cache> and <bin>.
2. A date with a time at or after the beginning of the recording becomes <now>, also in the id of a run. Dates of stored
   runs are older and stay.
3. Lines of progress that long work prints every few seconds, and that another harness is waited for, are left out of
   stderr.
4. JSON is indented. Data of a dashboard's page is JSON too.
5. Of calls that run the compiler, values of the keys that `_VARYING` matches become their type, and of the run folders
   that they write only names of files and the structure of JSON are kept: the paths of its keys, with their types.
   So it is of each finished.json, which holds hashes of files with dates.
6. Of an HTML page, text and links are kept; of an SVG, its texts; of other pictures, Parquet and a dashboard's static
   files, whether they are empty.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

_TIME = re.compile(
    r"(?<!\d)(\d{4})-?(\d\d)-?(\d\d)[T -](\d\d):?(\d\d)(?::?(\d\d))?(?:\.\d+)?(?:\+00:00|Z)?(?!\d)",
)
_VARYING = re.compile(
    r".*_ns|.*_rss_bytes|cached|compile_s|cpu|environment|harness_(commit|version)|id|jobs|kernel|load|machine|"
    r"module_sha256|started"
)
# Said of long work, every few seconds, and where another harness measures at the same time.
_PROGRESS = re.compile(r"^( +[a-z][^\n:]* \d+/\d+(:[^\n]*)?|Another harness is measuring[^\n]*)\n", re.MULTILINE)
_DATA = re.compile(r'dashboard\.put\((".*?"),(.*)\);?\s*', re.DOTALL)
_SVG_TEXT = re.compile(r"<(?:text|title|dc:title|dc:description)[^>]*>([^<]*)<")


@dataclass(frozen=True)
class Rules:
    """Rules 1 and 2.

    Attributes:
        places: What stands for each path.
        begin: When the recording began.
    """

    places: Mapping[str, str]
    begin: datetime

    def __call__(self, text: str) -> str:
        """The text by these rules."""
        for path, name in self.places.items():
            text = text.replace(path, name)
        return _TIME.sub(self._time, text)

    def _time(self, found: re.Match[str]) -> str:
        try:
            time = datetime(*(int(part or 0) for part in found.groups()), tzinfo=timezone.utc)  # type: ignore[misc,arg-type]
        except ValueError:
            return found[0]
        return "<now>" if time >= self.begin else found[0]


def without_progress(text: str) -> str:
    """Rule 3."""
    return _PROGRESS.sub("", text)


def printed(text: str, *, stable: bool) -> str:
    """Indent it if it is JSON; with `stable`, without values that vary from run to run."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if not isinstance(value, (dict, list)):
        return text
    return json.dumps(_masked(value) if stable else value, indent=1, ensure_ascii=False)


def structure(text: str) -> str:
    """The paths of a JSON value's keys with their types, a line each; lines of JSON are taken together."""
    try:
        values = [json.loads(text)]
    except ValueError:
        try:
            values = [json.loads(line) for line in text.splitlines()]
        except ValueError:
            return "no JSON"
    return "\n".join(sorted({path for value in values for path in _paths(value, "")}))


def content(file: Path, *, made_now: bool) -> str:
    """What is kept of a file; with `made_now` it is of a run that the call made."""
    if file.suffix in (".png", ".parquet", ".vmfb", ".npy", ".duckdb", ".irpa") or "static" in file.parts:
        return "(empty)" if file.stat().st_size == 0 else "(not empty)"
    text = file.read_text(encoding="utf-8", errors="replace")
    if file.name == "finished.json" or (made_now and file.suffix in (".json", ".jsonl")):
        return structure(text)
    if made_now and file.name == "report.md":
        return "(not empty)" if text else "(empty)"
    if file.suffix == ".svg":
        return "\n".join(_SVG_TEXT.findall(text))
    if file.suffix == ".html":
        return _page_text(text)
    if data := _DATA.fullmatch(text):
        return f"{data[1]}\n{json.dumps(json.loads(data[2]), indent=1, ensure_ascii=False)}"
    return printed(text, stable=False)


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: type(each).__name__ if _VARYING.fullmatch(key) and each is not None else _masked(each)
            for key, each in value.items()
        }
    return [_masked(each) for each in value] if isinstance(value, list) else value


def _paths(value: Any, path: str) -> Iterator[str]:
    # A bare flag name, file name, hash or case as a key is data, not structure.
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _paths(each, f"{path}.{key if re.fullmatch(r'[a-z_]+[0-9a-z_]*', key) else '*'}")
    elif isinstance(value, list) and value:
        for each in value:
            yield from _paths(each, f"{path}[]")
    else:
        kind = "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__
        yield f"{path} {kind}"


class _Text(HTMLParser):
    """Collects texts and links."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts += [f"[{tag} {name}={value}]" for name, value in attrs if name in ("href", "title", "aria-label")]

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.parts.append(" ".join(data.split()))


def _page_text(page: str) -> str:
    parser = _Text()
    parser.feed(page)
    return "\n".join(parser.parts)
