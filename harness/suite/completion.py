"""What a shell offers where a case of a suite is asked for."""

from __future__ import annotations

from pathlib import Path

from cyclopts import Parameter
from cyclopts.completion import CompletionContext

from harness.errors import HarnessError
from harness.suite.cases import matching
from harness.suite.load import load_suite


def case_names(path: Path, *, peers: bool = True) -> list[str]:
    """Names of a suite's cases by its matrix, skipped ones included; nothing is asked of this machine.

    Args:
        peers: Whether those of other engines are named too.
    """
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
