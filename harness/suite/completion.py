"""How a user names cases of a suite, and what a shell offers there."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.completion import CompletionContext

from harness.errors import HarnessError, UsageError
from harness.options import Strings
from harness.suite.cases import matching
from harness.suite.load import load_suite
from harness.text import did_you_mean, such_as


def case_names(path: Path, *, peers: bool = True) -> list[str]:
    """Names of a suite's cases by its matrix, skipped ones included; nothing is asked of this machine."""
    suite = load_suite(path).suite
    variants = [variant.name for variant in suite.variants]
    variants += [peer.case_label for peer in suite.peers] if peers else []
    names = [
        f"{model.name}/{variant}@{device.name}"
        for model in suite.models
        for variant in variants
        for device in suite.devices
    ]
    excluded = matching(suite.exclude).match if suite.exclude else lambda _: None
    return [name for name in names if matching(suite.include).match(name) and not excluded(name)]


def case_meant(path: Path, case: str | None) -> str:
    """The case of a suite that a user names, or the only one that there is."""
    if case is None:
        names = case_names(path, peers=False)
        if len(names) != 1:
            raise UsageError(f"{path}: which case is not said; give it behind the suite{such_as(names)}")
        return names[0]
    names = case_names(path)
    if case not in names:
        hint = did_you_mean(case, names, f"; `harness list {path}` shows them all")
        raise UsageError(f"{path}: there is no case {case!r}{hint}")
    return case


def complete_cases(context: CompletionContext) -> list[str]:
    """The cases of the suite that the command line names; none where it names none, or a wrong one."""
    suite = context.get("suite")
    return [] if suite is None or suite.raw is None else names_to_offer(suite.raw)


def names_to_offer(suite: str) -> list[str]:
    """Names of the cases of what may be a suite's file; none where it is not."""
    try:
        return case_names(Path(suite))
    except HarnessError:
        return []


# Of an option or an argument that is a case of the command's suite, or a pattern of such.
CASES = Parameter(completer=complete_cases)


@dataclass(frozen=True, kw_only=True)
class Filtered:
    """Which cases, by their names.

    Attributes:
        patterns: Only cases whose name matches; shell patterns; repeatable.
    """

    patterns: Annotated[Strings, Parameter(name="--filter"), CASES] = ()


@dataclass(frozen=True, kw_only=True)
class Selecting(Filtered):
    """Which cases, by their names and tags.

    Attributes:
        tags: Only cases with this tag; repeatable.
    """

    tags: Annotated[Strings, Parameter(name="--tag")] = ()
