"""The command line: parses, calls, prints."""

import difflib
import errno
import os
import signal
import sys
from collections.abc import Sequence

from cyclopts import CycloptsError, MissingArgumentError, UnknownCommandError

from harness.cli.app import application_for
from harness.cli.streams import prepare_streams, what_was_lost
from harness.errors import ExitCode, HarnessError
from harness.scratch import own_temporary_folder
from harness.text import terminal_line

__all__ = ["main", "run_command_line"]

_interruptions: list[int] = []
# `git bisect run` takes any other status below this one for bad, also that of a misspelt option.
_FOR_GIT_BISECT, _CANNOT_TELL, _STOPS_GIT_BISECT = "verdict", 125, 128


def main() -> None:
    """Entry point of the `harness` command."""
    prepare_streams()
    with own_temporary_folder():
        status = run_command_line(sys.argv[1:])
    if lost := what_was_lost():
        _complain(lost)
        if status == ExitCode.OK:
            status = _as_git_bisect_reads_it(sys.argv[1:], int(ExitCode.USAGE))
    sys.exit(status)


def run_command_line(arguments: Sequence[str]) -> int:
    """Run one command line; its exit status. Errors are one sentence on stderr."""
    return _as_git_bisect_reads_it(arguments, _status_of(arguments))


def _as_git_bisect_reads_it(arguments: Sequence[str], status: int) -> int:
    if list(arguments[:1]) == [_FOR_GIT_BISECT] and status not in (0, 1, _CANNOT_TELL) and status < _STOPS_GIT_BISECT:
        return _STOPS_GIT_BISECT + status
    return status


def _status_of(arguments: Sequence[str]) -> int:
    _interruptions.clear()
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else somebody wants it to be ignored
        signal.signal(signal.SIGINT, _interrupt)
    try:
        app = application_for(arguments)
        status = app(list(arguments), exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except HarnessError as error:
        _stop_children()
        _complain(str(error))
        return int(error.exit_code)
    except CycloptsError as error:
        _complain(" ".join(_words_of(error).split()) + " (see harness --help)")
        return int(ExitCode.USAGE)
    except KeyboardInterrupt:
        _stop_children()
        _complain("interrupted")
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.OK)
    except Exception as error:  # a defect: still one sentence, and never the status of a regression
        _stop_children()
        if _interruptions:  # C code that one comes in the way of may raise something else, as numpy's does
            _complain("interrupted")
            return int(ExitCode.INTERRUPTED)
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:  # only users make such names
            _complain(f"{error.filename}: is too long for the name of a file; shorten it")
            return int(ExitCode.USAGE)
        if "HARNESS_TRACEBACK" in os.environ:
            raise
        text = " ".join(str(error).split())[:300]
        _complain(f"internal error: {type(error).__name__}: {text}; HARNESS_TRACEBACK=1 shows where, please report it")
        return int(ExitCode.INTERNAL)
    return int(status) if isinstance(status, int) else int(ExitCode.OK)


def _words_of(error: CycloptsError) -> str:
    """What is wrong; an argument is often missing since its option, or that of another one, is misspelt."""
    if isinstance(error, MissingArgumentError) and error.app is not None:
        words = [word.partition("=")[0] for word in error.unused_tokens or ()]
        known = [name for argument in error.app.assemble_argument_collection() for name in argument.names]
    elif isinstance(error, UnknownCommandError):
        words, known = [str(word) for word in (error.unused_tokens or ())[:1]], ["--help", "--version"]
    else:
        return str(error)
    unknown = next((word for word in words if word.startswith("--") and word not in known), None)
    if unknown is None:
        return str(error)
    near = difflib.get_close_matches(unknown, known, n=1)
    return f"Unknown option: {unknown}.{f' Did you mean {near[0]}?' if near else ''}"


def _stop_children() -> None:
    if "harness.process" in sys.modules:  # else none was started
        from harness.process import stop_all

        stop_all()


def _interrupt(number: int, _: object) -> None:
    _interruptions.append(number)
    raise KeyboardInterrupt


def _complain(sentence: str) -> None:
    sys.stderr.write(f"harness: {terminal_line(sentence)}\n")
