"""The process that runs one rewrite: what it answers, and that it needs nothing but a toolchain's own Python."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import iree.compiler
import pytest

from harness.compile.program import CHILD

FAKES = Path(__file__).parent.parent / "fakes"


def line(text: str) -> str:
    """How a place in fake_rewrites.py is named: `fake_rewrites.py:69`."""
    lines = (FAKES / "fake_rewrites.py").read_text().splitlines()
    return f"fake_rewrites.py:{next(number for number, line in enumerate(lines, start=1) if text in line)}"


PROGRAM = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %slope = arith.constant 0.25 : f32
  %empty = tensor.empty() : tensor<4xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]
  } ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %z = arith.mulf %in, %slope : f32
    linalg.yield %z : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}
"""


@dataclass(frozen=True)
class Ended:
    """What one child left behind."""

    answer: dict[str, Any] | None
    module: bytes | None
    finished: subprocess.CompletedProcess[str]


Ask = Callable[..., Ended]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Run the child with a function of tests/fakes/fake_rewrites.py."""
    (tmp_path / "in.mlir").write_text(PROGRAM)

    def ask_it(
        function: str,
        *,
        python: Sequence[str] = (sys.executable,),
        sites: Sequence[str] = (str(FAKES),),
        text: str = PROGRAM,
        **options: Any,
    ) -> Ended:
        (tmp_path / "in.mlir").write_text(text)
        output, answer = tmp_path / "out.mlir", tmp_path / "answer.json"
        request = {
            "input": "in.mlir",
            "output": "out.mlir",
            "answer": str(answer),
            "function": function,
            "options": options,
            "entry": "main",
            "sites": list(sites),
        }
        (tmp_path / "request.json").write_text(json.dumps(request))
        finished = subprocess.run(
            [*python, str(CHILD), str(tmp_path / "request.json")],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return Ended(
            answer=json.loads(answer.read_text()) if answer.exists() else None,
            module=output.read_bytes() if output.exists() else None,
            finished=finished,
        )

    return ask_it


def told(ended: Ended) -> str:
    """The one phrase with which a rewrite was refused; nothing else came of it."""
    assert ended.finished.returncode == 0
    assert ended.module is None
    assert ended.answer is not None
    assert list(ended.answer) == ["error"]
    assert "\n" not in ended.answer["error"]
    return str(ended.answer["error"])


def test_a_rewrite_changes_the_module_and_says_how_often(ask: Ask) -> None:
    ended = ask("fake_rewrites:times", factor=2.0)
    assert ended.answer == {"matched": 1, "changed": True}
    assert ended.module is not None
    assert ended.module.startswith(b"ML\xefR"), "it is bytecode, whatever came in"


@pytest.mark.parametrize(
    ("function", "answer"),
    [
        ("fake_rewrites:nothing", {"matched": 0, "changed": False}),
        (
            "fake_rewrites:says_what_it_left_alone",
            {"matched": 0, "changed": False, "left_alone": {"loops of no length": 53, "x" * 100: 1}},
        ),
        (
            "fake_rewrites:says_what_it_left_alone_wrongly",
            {"error": "returned 'many', and not how many places it matched"},
        ),
        ("fake_rewrites:returns_numpys_integer", {"matched": 1, "changed": True}),
        ("fake_rewrites:prints", {"matched": 1, "changed": True}),
    ],
)
def test_what_a_rewrite_answers(ask: Ask, function: str, answer: dict[str, Any]) -> None:
    assert ask(function).answer == answer


def test_options_come_as_keyword_arguments_of_json(ask: Ask) -> None:
    options = {"width": 8, "deep": True, "sizes": [1, 2], "name": 'a\n"b" | `c`', "none": None, "scale": 1e300}
    assert told(ask("fake_rewrites:unroll", **options)).startswith(f"raised ValueError: {options!r} (")
    assert told(ask("fake_rewrites:nothing", deep=True)) == (
        f"raised TypeError: nothing() got an unexpected keyword argument 'deep' ({line('def nothing')})"
    )


def test_an_exception_has_the_rewrites_file_and_line_and_its_own_frames(ask: Ask) -> None:
    ended = ask("fake_rewrites:raises")
    assert told(ended) == f"raised KeyError: 'two\\nlines' ({line('raise KeyError')})"
    trace = ended.finished.stderr.splitlines()
    assert trace[0] == "Traceback (most recent call last):"
    frames = [text.strip() for text in trace if text.startswith("  File")]
    number = line("raise KeyError").partition(":")[2]
    assert frames == [f'File "{FAKES}/fake_rewrites.py", line {number}, in raises'], "none is the harness's"


def test_what_a_rewrite_prints_on_both_streams_stays_in_order(ask: Ask) -> None:
    ended = ask("fake_rewrites:talks")
    assert (ended.finished.stdout, ended.finished.stderr) == ("", "one\ntwo\nthree\n")


@pytest.mark.parametrize(
    ("function", "phrase"),
    [
        ("fake_rewrites:returns_none", "returned None, and not how many places it matched"),
        ("fake_rewrites:returns_endlessly_many", f"returned 1{'0' * 99}, and not how many places it matched"),
        ("fake_rewrites:renames_the_entry", "removed or renamed the entry function 'main'"),
        ("fake_rewrites:raises_no_text", f"raised ValueError: ?.mlir ({line(chr(92) + 'udcff')})"),
        ("fake_rewrites:denies", "changed the module, and says that it matched nothing"),
        (
            "no_such_package.rewrites:fold",
            "cannot be imported (ModuleNotFoundError: No module named 'no_such_package')",
        ),
        ("fake_rewrites:NO_FUNCTION", "raised TypeError: 'int' object is not callable"),
    ],
)
def test_what_a_rewrite_may_not_do(ask: Ask, function: str, phrase: str) -> None:
    assert told(ask(function)) == phrase


def test_a_module_that_does_not_verify_is_not_given_back(ask: Ask) -> None:
    ended = ask("fake_rewrites:breaks")
    assert told(ended) == "left a module that does not verify: 'linalg.generic' op requires attribute 'iterator_types'"
    assert "see current operation" in ended.finished.stderr, "all of it is kept for the author"


def test_a_module_that_fails_to_import(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "broken_rewrites.py").write_text("raise RuntimeError('needs\\na GPU')\n")
    ended = ask("broken_rewrites:fold", sites=[str(tmp_path / "site")])
    assert told(ended) == "cannot be imported (RuntimeError: needs a GPU) (broken_rewrites.py:1)"
    assert ended.finished.stderr.count("  File") == 1, "the traceback is kept for the author, without what imported it"


def test_a_rewrite_that_ends_the_process_gives_no_answer(ask: Ask) -> None:
    ended = ask("fake_rewrites:exits", status=3)
    assert (ended.answer, ended.module, ended.finished.returncode) == (None, None, 3)


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
    ended = ask("fake_rewrites:tells_whose_compiler", python=(str(python), "-I"), sites=sites)
    assert told(ended).startswith(f"raised ValueError: iree.compiler is in {own}/iree/compiler, isolated 1 (")


def test_files_beside_the_child_are_no_modules(ask: Ask) -> None:
    """It is started by its path, which Python puts first in the search path: `plugin` there is ours."""
    assert told(ask("plugin:package_file")) == "cannot be imported (ModuleNotFoundError: No module named 'plugin')"
