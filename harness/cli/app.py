"""The application that commands register with, and where each command is.

A command's options are the fields of one dataclass. Only the module of the command that is called is imported, so
that modules import what they need at their head and `harness --help` waits for none of it.
"""

from collections.abc import Sequence
from importlib import import_module

from cyclopts import App

from harness import __version__

# The module of each command, and the first sentence of its help.
COMMANDS = {
    "ablate": ("inspect:ablate", "Run a model with no option of a plugin, each alone, all but each, and all."),
    "bench": (
        "inspect:bench",
        "Time a model's file under several sets of flags, or toolchains, side by side; no suite is needed.",
    ),
    "bisect": (
        "bisect:bisect",
        "Find the release or commit since which a case is slower, or the flags that make it so.",
    ),
    "check": ("run:check", "Say what is wrong with a suite, or has no effect in it, without compiling anything."),
    "compare": ("compare:compare", "Say of every case whether head is slower or faster than base, by measuring both."),
    "completion": ("inspect:completion", "Print a script that makes a shell complete commands and names of runs."),
    "dashboard": ("plot:dashboard", "Make a folder of pages that shows a whole history, for any web server."),
    "doctor": ("inspect:doctor", "Say what is here: tools, drivers, devices, and what would make timing noisy."),
    "explain": ("compare:explain", "Say where the time of a case goes on two sides, and what the compiler did there."),
    "export": ("inspect:export", "Write a model's MLIR and inputs to a folder, for use with plain IREE tools."),
    "fleet": ("fleet:fleet", "Let many hosts compile and measure for one run."),
    "github": ("github:github", "Post reports on GitHub."),
    "goldens": (
        "goldens:goldens",
        "Propose golden times, and say how often IREE's gate on them fails with nothing wrong.",
    ),
    "history": ("history:history_app", "Ask all runs of a results folder: what changed, when, and by whose doing."),
    "ir": ("inspect:ir", "Count the operations of a case's IR at phases of the compiler, or compare two cases' IR."),
    "list": ("run:list_cases", "Show a suite's cases, and which of them would be skipped here and why."),
    "new": ("inspect:new_app", "Begin a plugin or a suite of your own, or write out the suites of the harness."),
    "plot": ("plot:plot", "Draw a run, a comparison, an explanation, a tuning, or a series of a results folder."),
    "plugins": ("inspect:plugins", "Show the plugins, builders and peers that are installed, with their options."),
    "report": ("report:report", "Print the report of a run or another result again."),
    "results": ("results:results_app", "Keep many runs: list, tag, merge, import and check them."),
    "run": ("run:run", "Compile, check and measure every case of a suite, and print the report."),
    "schema": ("inspect:schema", "Print the JSON Schema of one kind of TOML file, for editors."),
    "selfcheck": ("compare:selfcheck", "Compare modules with themselves: how often is a verdict wrong?"),
    "tune": ("bisect:tune", "Search the flags, plugins and lowering configurations that make a model fast."),
    "verdict": ("bisect:verdict", "Say whether a case is as good as a run's, as `git bisect run` asks it."),
}


def _application() -> App:
    return App(
        name="harness",
        help="Measure what ML compilers do: models x compiler-flag variants x devices, through IREE's own tools.",
        version=__version__,
        suppress_keyboard_interrupt=False,  # run_command_line says what was interrupted, and stops the children
    )


app = _application()


def application_for(arguments: Sequence[str]) -> App:
    """The application with the command that the arguments name; where they name none, with a sentence for each."""
    if arguments and arguments[0] in COMMANDS:
        module, _, _ = COMMANDS[arguments[0]][0].partition(":")
        import_module(f"harness.cli.{module}")
        return app
    overview = _application()
    for name, (place, sentence) in COMMANDS.items():
        overview.command(f"harness.cli.{place}", name=name, help=sentence)
    return overview
