"""How a command line ends: one sentence on stderr, and the exit status that docs/architecture.md promises."""

import errno
import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import __version__, cli
from harness.cli import run_command_line
from harness.cli.app import COMMANDS, application_for
from harness.errors import CaseError, Interrupted, UsageError


@pytest.fixture(autouse=True)
def _same_handlers_afterwards() -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def ends(monkeypatch: pytest.MonkeyPatch, command: Callable[[], object]) -> int:
    """The exit status of a command that does this."""
    monkeypatch.delenv("HARNESS_TRACEBACK", raising=False)
    monkeypatch.setattr(cli, "application_for", lambda _: lambda *_, **__: command())
    return run_command_line(["run"])


DEFECT = "internal error: ZeroDivisionError: two lines; HARNESS_TRACEBACK=1 shows where, please report it"


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (UsageError("suite.toml: there is no such file"), 2, "suite.toml: there is no such file"),
        (CaseError("compile", "it does not compile"), 3, "it does not compile"),
        (OSError(errno.ENAMETOOLONG, "", "long"), 2, "long: is too long for the name of a file; shorten it"),
        (Interrupted("interrupted; go on with --resume"), 130, "interrupted; go on with --resume"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ZeroDivisionError("two\nlines"), 70, DEFECT),
    ],
)
def test_every_error_has_its_status(
    error: BaseException,
    status: int,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def command() -> None:
        raise error

    assert ends(monkeypatch, command) == status
    assert capsys.readouterr().err == f"harness: {sentence}\n"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("bench m.mlir --generatons=5", "Unknown option: --generatons. Did you mean --generations?"),
        ("--verison", "Unknown option: --verison. Did you mean --version?"),
        ("bench m.mlir --xyzzy", "Unknown option: --xyzzy."),
        ("ablate s.toml --model m", 'Command "ablate" parameter --plugin requires an argument.'),
    ],
)
def test_a_misspelt_option_is_held_against_the_commands_own(
    line: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(line.split()) == 2
    assert capsys.readouterr().err == f"harness: {sentence} (see harness --help)\n"


def test_the_package_is_the_command() -> None:
    ended = subprocess.run([sys.executable, "-m", "harness", "--version"], capture_output=True, text=True, check=True)
    assert ended.stdout == f"{__version__}\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_interrupts_also_where_other_code_turns_it_into_another_error(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ends(monkeypatch, lambda: os.kill(os.getpid(), number)) == 130
    assert capsys.readouterr().err == "harness: interrupted\n"

    def command() -> None:
        try:
            os.kill(os.getpid(), number)
        except KeyboardInterrupt:
            raise TypeError("expected str, bytes or os.PathLike object, not BufferedReader") from None

    assert ends(monkeypatch, command) == 130
    assert capsys.readouterr().err == "harness: interrupted\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_where_the_list_of_commands_says(name: str) -> None:
    place, sentence = COMMANDS[name]
    command = application_for([name])[name]
    assert command.help.splitlines()[0] == sentence
    module, _, thing = place.partition(":")
    assert getattr(importlib.import_module(f"harness.cli.{module}"), thing) in (command, command.default_command)


def test_the_page_of_commands_is_what_the_declarations_say() -> None:
    root = Path(__file__).parents[2]
    made = subprocess.run([sys.executable, root / "scripts/commands.py"], capture_output=True, text=True, check=True)
    assert made.stdout == (root / "docs/commands.md").read_text(), "make commands"


def test_a_case_may_stand_behind_the_suite_and_cases_behind_the_sides() -> None:
    for line in ("bisect a.toml net/stock@cpu", "verdict a.toml --case net/stock@cpu --against good"):
        words = line.split()
        _, bound, _ = application_for(words[:1]).parse_args(words)
        assert bound.arguments["options"].case == "net/stock@cpu"
    for line, sides, patterns in (
        ("base head net/* --filter lm/*", ("base", "head"), ("lm/*", "net/*")),
        ("base net/* --toolchain 3.12.0", ("base",), ("net/*",)),
        ("net/* --within base", (), ("net/*",)),
    ):
        _, bound, _ = application_for(["compare"]).parse_args(["compare", *line.split()])
        options = bound.arguments["options"].with_cases_apart()
        assert (options.sides, options.patterns) == (sides, patterns)


def test_the_list_of_commands_needs_none_of_what_they_import() -> None:
    code = "import sys; from harness.cli import run_command_line as run; run(['--help']); print(sorted(sys.modules))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert all(name in printed for name in COMMANDS)
    assert "harness.cli.app" in printed
    assert not [name for name in ("numpy", "pydantic", "harness.cli.run", "harness.report") if f"'{name}'" in printed]


def test_a_shell_completes_commands_options_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert all(f'"{command}"' in script for command in COMMANDS)
    assert "--model-input" in script
    run = tmp_path / "results" / "20260101-000000-a"
    run.mkdir(parents=True)
    (run / "run.json").touch()
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["__complete", "report", ""]) == 0
    assert "results/20260101-000000-a" in capsys.readouterr().out
