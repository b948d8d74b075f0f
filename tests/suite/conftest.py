"""A small suite beside the files it names, and the cases of suites."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.errors import SuiteError
from harness.plugins import Applied
from harness.records.case import Case
from harness.suite.cases import Selection, plan_cases
from harness.suite.devices import Presence
from harness.suite.load import Suite, load_suite
from tests.builders import FLAGS, SUITE

WriteSuite = Callable[..., Path]


def replaced(text: str, old: str, new: str) -> str:
    """The text with its one `old` replaced; without an old, the new is appended."""
    if not old:
        return text + new
    assert text.count(old) == 1, f"{old!r} is not in the text exactly once"
    return text.replace(old, new)


@pytest.fixture
def write_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteSuite:
    """Write the small suite with one piece replaced by another; its path, as a user there would type it."""
    monkeypatch.chdir(tmp_path)
    Path("net.mlir").touch()

    def write(old: str = "", new: str = "", *, flags: str = FLAGS) -> Path:
        path = Path("suite.toml")
        path.write_text(replaced(SUITE, old, new))
        Path("flags.toml").write_text(flags)
        return path

    return write


def refusal(path: Path) -> str:
    """The sentence with which a suite's file is refused."""
    with pytest.raises(SuiteError) as caught:
        load_suite(path)
    return str(caught.value)


def plan(
    suite: Suite,
    *,
    model_ids: Mapping[str, str] | None = None,
    toolchain: str = "3.13.0",
    plugins: Mapping[str, Sequence[Applied]] | None = None,
    unavailable: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    patterns: tuple[str, ...] = (),
    tags: tuple[str, ...] = (),
    **others: Any,
) -> tuple[Case, ...]:
    """The suite's cases on a machine that has everything, unless the test says otherwise."""
    return plan_cases(
        suite,
        model_ids=model_ids or {model.name: f"the definition of {model.name}" for model in suite.models},
        toolchain=toolchain,
        plugins=plugins or {},
        devices={
            device.name: Presence(missing=(unavailable or {}).get(device.name), environment=environment or {})
            for device in suite.devices
        },
        selection=Selection(patterns=patterns, tags=tags),
        **others,
    )


def names(cases: Sequence[Case]) -> list[str]:
    """The names of cases, in order."""
    return [case.name for case in cases]
