"""The process that runs one rewrite: what it answers, and that it needs nothing but a toolchain's own Python."""

import json
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import iree.compiler
import pytest

from harness.compile.program import CHILD
from tests.programs import program

FAKES = Path(__file__).parent.parent / "fakes"
PROGRAM = program("main x:4\nslope = constant 0.25\ny = each mulf x slope\nreturn y")


def line(text: str) -> str:
    """How a place in fake_rewrites.py is named: `fake_rewrites.py:69`."""
    lines = (FAKES / "fake_rewrites.py").read_text().splitlines()
    return f"fake_rewrites.py:{next(number for number, line in enumerate(lines, start=1) if text in line)}"


class Ended(NamedTuple):
    """What one child left behind."""

    answer: Any
    module: bytes | None
    finished: subprocess.CompletedProcess[str]


Ask = Callable[..., Ended]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Run the child with a function, of tests/fakes/fake_rewrites.py unless it has a colon."""

    def ask_it(
        function: str,
        *,
        python: Sequence[str] = (sys.executable,),
        sites: Sequence[str] = (str(FAKES),),
        **options: Any,
    ) -> Ended:
        (tmp_path / "in.mlir").write_text(PROGRAM)
        output, answer = tmp_path / "out.mlir", tmp_path / "answer.json"
        function = function if ":" in function else f"fake_rewrites:{function}"
        request = {"function": function, "options": options, "entry": "main", "sites": list(sites)}
        request |= {"input": "in.mlir", "output": "out.mlir", "answer": str(answer)}
        (tmp_path / "request.json").write_text(json.dumps(request))
        command = [*python, str(CHILD), str(tmp_path / "request.json")]
        finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        return Ended(
            json.loads(answer.read_text()) if answer.exists() else None,
            output.read_bytes() if output.exists() else None,
            finished,
        )

    return ask_it


OPTIONS = {"width": 8, "deep": True, "sizes": [1, 2], "name": 'a\n"b" | `c`', "none": None, "scale": 1e300}


@pytest.mark.parametrize(
    ("function", "options", "answer"),
    [
        ("times", {"factor": 2.0}, {"matched": 1, "changed": True}),
        ("nothing", {}, {"matched": 0, "changed": False}),
        ("returns_none", {}, "returned None, and not how many places it matched"),
        ("returns_negative", {}, "returned -1, and not how many places it matched"),
        ("renames_the_entry", {}, "removed or renamed the entry function 'main'"),
        ("raises_no_text", {}, f"raised ValueError: ?.mlir ({line(chr(92) + 'udcff')})"),
        ("denies", {}, "changed the module, and says that it matched nothing"),
        ("unroll", OPTIONS, f"raised ValueError: {OPTIONS!r} ({line('{options!r}')})"),
        ("no_such_package:f", {}, "cannot be imported (ModuleNotFoundError: No module named 'no_such_package')"),
        # The child is started by its path, which Python puts first in the search path: `plugin` there is ours.
        ("plugin:package_file", {}, "cannot be imported (ModuleNotFoundError: No module named 'plugin')"),
    ],
)
def test_what_a_rewrite_comes_to(ask: Ask, function: str, options: dict[str, Any], answer: Any) -> None:
    """What it matched with a module in bytecode; or one phrase with which it was refused, and no module."""
    ended = ask(function, **options)
    assert ended.finished.returncode == 0
    assert ended.answer == ({"error": answer} if isinstance(answer, str) else answer)
    assert (ended.module or b"").startswith(b"ML\xefR") == ("error" not in ended.answer)


def test_an_exception_has_the_rewrites_file_and_line_and_its_traceback(ask: Ask) -> None:
    ended = ask("raises")
    assert ended.answer == {"error": f"raised KeyError: 'two\\nlines' ({line('raise KeyError')})"}
    number = line("raise KeyError").partition(":")[2]
    assert f'File "{FAKES}/fake_rewrites.py", line {number}, in raises' in ended.finished.stderr


def test_a_module_that_does_not_verify_is_not_given_back_and_what_is_printed_stays_in_order(ask: Ask) -> None:
    ended = ask("breaks")
    phrase = "left a module that does not verify: 'linalg.generic' op requires attribute 'iterator_types'"
    assert (ended.answer, ended.module) == ({"error": phrase}, None)
    assert "see current operation" in ended.finished.stderr, "all of it is kept for the author"
    ended = ask("talks")
    assert (ended.finished.stdout, ended.finished.stderr) == ("", "one\ntwo\nthree\n")


def test_the_harness_is_not_needed_and_the_toolchains_own_compiler_is_taken(ask: Ask, tmp_path: Path) -> None:
    """In an environment with another iree.compiler, isolated as toolchains are; the rewrite is found beside us."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    python = tmp_path / "env" / "bin" / "python"
    command = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    own = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    (own / "iree").mkdir()
    (own / "iree" / "compiler").symlink_to(next(iter(iree.compiler.__path__)))
    (own / "numpy").symlink_to(Path(sysconfig.get_path("platlib")) / "numpy")
    sites = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), str(FAKES)]
    ended = ask("tells_whose_compiler", python=(str(python), "-I"), sites=sites)
    found = f"raised ValueError: iree.compiler is in {own}/iree/compiler, isolated 1 ("
    assert ended.answer["error"].startswith(found)
