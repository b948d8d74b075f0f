"""--quiet and --verbose: one declaration, the same in every long command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.cli import compare, inspect, run
from harness.cli.output import reporter, teller
from harness.compare.options import SelfcheckOptions
from harness.errors import RunError, UsageError
from harness.progress import Progress, Silent, Terminal
from harness.stages.options import BenchOptions, RunOptions

QUIET = ("--quiet", "-q")
VERBOSE = ("--verbose", "-v")
SUITE = Path("a.toml")


def test_both_contradict_each_other() -> None:
    with pytest.raises(UsageError, match="--quiet and --verbose contradict each other; leave one of them out"):
        reporter(quiet=True, verbose=True)
    assert isinstance(reporter(quiet=False, verbose=True), Terminal)


def test_what_is_said_besides_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    teller(quiet=True)("kept")
    with reporter(quiet=True) as progress:
        progress.stage("Compile", 2)
        progress.step("a")
        progress.note("failed")
        progress.left("1 min")
    assert capsys.readouterr().err == ""
    teller(quiet=False)("kept")
    assert capsys.readouterr().err == "kept\n"


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("command", ["run", "selfcheck", "bench"])
def test_a_command_hands_on_what_it_is_told(command: str, quiet: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the run that it makes, and by whom it is watched."""
    seen: list[tuple[bool, bool, bool]] = []

    def make(options: RunOptions, progress: Progress, *_: object, **__: object) -> Path:
        seen.append((isinstance(progress, Silent), isinstance(progress, Terminal), options.verbose))
        raise RunError("that is enough")

    for module in (run, compare):
        monkeypatch.setattr(module, "run_suite", make)
    monkeypatch.setattr(inspect, "write_bench", lambda _: SUITE)
    loud: dict[str, Any] = {"quiet": quiet, "verbose": not quiet}
    calls = {
        "run": lambda: run.run(RunOptions(Path(__file__).with_name("none.toml"), **loud)),
        "selfcheck": lambda: compare.selfcheck(SelfcheckOptions(SUITE, **loud)),
        "bench": lambda: inspect.bench(BenchOptions(Path("a.mlir"), flags=("", ""), **loud)),
    }
    monkeypatch.setattr(run, "find_list", lambda _: None)
    with pytest.raises(RunError):
        calls[command]()
    assert seen == [(quiet, not quiet, not quiet)]
