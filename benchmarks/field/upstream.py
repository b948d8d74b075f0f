"""What upstream says of findings: IREE's issues and pull requests that fit, as people found them for upstream.toml."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from harness.errors import SuiteError
from harness.report.markdown import escape

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FILE = Path(__file__).with_name("upstream.toml")
SEARCHED = (
    "IREE's issues and pull requests were searched on 2026-11-28 and 29 for llvm-cpu and the kind of operator, the "
    "subjects of its changes were read as far as they were at hand, until 2026-08-21, and the diffs of those that are "
    "named here."
)


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Report:
    """An issue or a pull request, and what it is the report of."""

    direction: Literal["slower", "faster", "wrong", "fails"]  # The last two of faults
    # One of these is in what is said to differ; where one is only in the name of a case, the report is near
    contains: tuple[str, ...]
    text: str
    after: str = ""  # The release in which it begins; "" of faults
    url: str = ""
    near: bool = False  # It changes what the finding is about, and nothing says that it is the cause
    sought: bool = False  # It was to be found without being told


def known_reports() -> list[Report]:
    """All of upstream.toml."""
    try:
        return TypeAdapter(list[Report]).validate_python(tomllib.loads(_FILE.read_text())["report"])
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise SuiteError(f"{_FILE.name}, report {where} (from 0): {first['msg']}") from None
    except tomllib.TOMLDecodeError as error:
        raise SuiteError(f"{_FILE.name} is no TOML: {error}") from None


def report_of(
    reports: Iterable[Report], direction: str, after: str, said: Sequence[str], cases: Sequence[str]
) -> Report | None:
    """The first that fits what is said, else the first that fits the cases' names, which is near and no cause."""
    fitting = [report for report in reports if (report.direction, report.after) == (direction, after)]
    for texts in (said, cases):
        for report in fitting:
            if any(piece in text for piece in report.contains for text in texts):
                return report if texts is said else replace(report, near=True)
    return None


def told(report: Report | None) -> str:
    """What the pages say of a report, in Markdown."""
    if report is None:
        return "no report found"
    said = f"[{escape(report.text)}]({report.url})" if report.url else escape(report.text)
    return f"no report found; {said}" if report.near else said
