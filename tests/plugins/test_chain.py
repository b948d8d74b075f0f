"""Plugins in a row: what their steps come to; and the process that runs one rewrite: what it answers."""

import json
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import iree.compiler
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import SuiteError
from harness.plugins import (
    Applied,
    CompilerPlugin,
    ExecutablePlugin,
    Flags,
    PassPipeline,
    PdlSpec,
    Rewrite,
    Step,
    TransformLibrary,
    TransformSpec,
    TuningSpec,
    child,
    written_file,
)
from harness.plugins.chain import PIPELINE_FLAG, Arranged, arrange, gives
from harness.plugins.child import Refused
from harness.plugins.plugin import REWRITE_PHASES
from tests.builders import a_plugin, applied
from tests.programs import program

WHERE = "s.toml: [variants.wide] plugins"
SPEC, KERNEL = written_file("spec.mlir", "module {}"), written_file("kernel.so", "code")
NAMES = ("alpha", "beta", "gamma", "delta", "epsilon")


def a_chain(*steps: Step | Sequence[Step]) -> tuple[Applied, ...]:
    """Plugins alpha, beta, ..., each with one step or with several."""
    return tuple(
        applied(a_plugin(name, *(one if isinstance(one, Sequence) else (one,))))
        for name, one in zip(NAMES, steps, strict=False)
    )


def arranged(*steps: Step | Sequence[Step], flags: Sequence[str] = ()) -> Arranged:
    return arrange(a_chain(*steps), flags, WHERE)


def refusal(*steps: Step | Sequence[Step], flags: Sequence[str] = ()) -> str:
    with pytest.raises(SuiteError) as caught:
        arranged(*steps, flags=flags)
    return str(caught.value).removeprefix(f"{WHERE}: ")


def at(phase: str) -> Rewrite:
    return Rewrite(function="a_package:fold", phase=phase)


def running(*passes: str) -> PassPipeline:
    return PassPipeline(text=f"builtin.module({','.join(passes)})")


@pytest.mark.parametrize(
    ("step", "flags"),
    [
        (Flags(compile=("--a", "--b=1")), ("--a", "--b=1")),
        (TransformSpec(file=SPEC), (f"--iree-preprocessing-transform-spec-filename={SPEC.unique_name}",)),
        (PdlSpec(file=SPEC), (f"--iree-preprocessing-pdl-spec-filename={SPEC.unique_name}",)),
        (TuningSpec(file=SPEC), (f"--iree-codegen-tuning-spec-path={SPEC.unique_name}",)),
        (TransformLibrary(file=SPEC), (f"--iree-codegen-transform-dialect-library={SPEC.unique_name}",)),
        (
            TransformLibrary(file=SPEC, entry="tile"),
            (f"--iree-codegen-transform-dialect-library={SPEC.unique_name}@tile",),
        ),
        (
            CompilerPlugin(file=KERNEL, activate=("one", "two"), flags=("--one-fast",)),
            ("--one-fast", f"--iree-load-plugin=./{KERNEL.unique_name}", "--iree-plugin=one", "--iree-plugin=two"),
        ),
        (ExecutablePlugin(file=KERNEL), ()),
        (at("flow"), ()),
    ],
)
def test_what_each_kind_of_step_gives_to_iree_compile(step: Step, flags: tuple[str, ...]) -> None:
    (plugin,) = a_chain(step)
    assert arrange([plugin], (), WHERE).compile_flags == flags
    assert all(gives(plugin, flag) for flag in flags)
    assert not gives(plugin, "--other")


def test_what_the_runtime_loads_has_a_folder_and_what_two_steps_read_lies_there_once() -> None:
    """A bare name would be looked for where the system keeps its libraries."""
    (flag,) = arranged(ExecutablePlugin(file=KERNEL)).run_flags
    assert flag == f"--executable_plugin=./{KERNEL.unique_name}"
    assert gives(a_chain(ExecutablePlugin(file=KERNEL))[0], flag), "or else a suite would have to answer for it"
    assert arranged(TransformLibrary(file=SPEC), TuningSpec(file=SPEC)).files == (SPEC,)
    assert arranged([PdlSpec(file=SPEC), ExecutablePlugin(file=KERNEL)]).files == (SPEC, KERNEL)


def test_later_flags_replace_earlier_ones_but_those_that_load_compiler_plugins_are_a_list() -> None:
    assert arranged(Flags(compile=("--a=1", "--b")), Flags(compile=("--a=2",))).compile_flags == ("--b", "--a=2")
    other = written_file("other.so", "code")
    flags = arranged(CompilerPlugin(file=KERNEL, activate=("one",)), CompilerPlugin(file=other, activate=("two",)))
    assert flags.compile_flags == (
        f"--iree-load-plugin=./{KERNEL.unique_name}",
        "--iree-plugin=one",
        f"--iree-load-plugin=./{other.unique_name}",
        "--iree-plugin=two",
    )


def test_pass_pipelines_are_joined_and_the_variants_own_comes_first() -> None:
    """Of two, the last, as iree-compile takes it."""
    whole = arranged(
        running("cse"),
        Flags(compile=("--a", f"--{PIPELINE_FLAG}=builtin.module(util.func(canonicalize),cse)")),
        flags=("--x", *(f"--{PIPELINE_FLAG}=builtin.module({name})" for name in ("canonicalize", "inline"))),
    )
    joined = "builtin.module(inline,cse,util.func(canonicalize),cse)"
    assert whole.compile_flags == ("--a", f"--{PIPELINE_FLAG}={joined}")
    own = f"--{PIPELINE_FLAG}=builtin.module(inline)"
    assert arranged(Flags(compile=("--a",)), flags=(own,)) == Arranged(compile_flags=("--a",)), "it stays a flag"


@pytest.mark.parametrize("text", ["cse", "util.func(cse)", "builtin.module(cse", ""])
def test_a_pipeline_of_another_form_cannot_be_joined(text: str) -> None:
    alone = arranged(PassPipeline(text=text))
    assert alone.compile_flags == (f"--{PIPELINE_FLAG}={text}",), "alone it is iree-compile's to judge"
    assert refusal(running("cse"), PassPipeline(text=text)) == (
        f"{text!r} cannot be joined with another pass pipeline; write it as builtin.module(...)"
    )


_WAY: dict[str, Step] = {
    "input": at("input"),
    "abi": at("abi"),
    "passes": running("cse"),
    "transform spec": TransformSpec(file=SPEC),
    "PDL spec": PdlSpec(file=SPEC),
    **{phase: at(phase) for phase in REWRITE_PHASES[2:]},
    "tuning spec": TuningSpec(file=SPEC),
}


@given(names=st.lists(st.sampled_from(list(_WAY)), unique=True, max_size=5))
def test_steps_run_in_the_order_in_which_they_are_named_or_not_at_all(names: list[str]) -> None:
    steps = [_WAY[name] for name in names]
    if names != sorted(names, key=list(_WAY).index):
        assert refusal(*steps).endswith(" first")
        return
    phases = [REWRITE_PHASES.index(rewrite.phase) for _, rewrite in arranged(*steps).rewrites]
    assert phases == sorted(phases)


def test_a_plugin_that_comes_too_late_is_named_with_the_one_before_it() -> None:
    assert refusal(at("flow"), Flags(compile=("--a",)), running("cse")) == (
        "gamma runs passes in phase preprocessing, and alpha, named before it, rewrites the module after phase flow; "
        "name gamma first"
    )
    assert refusal([at("flow"), at("input")]) == (
        "alpha rewrites the module after phase input, and alpha, named before it, rewrites the module after phase "
        "flow; ask its author to order its steps"
    )


@pytest.mark.parametrize(
    ("kind", "noun"),
    [
        (TransformSpec, "transform spec"),
        (PdlSpec, "PDL spec"),
        (TuningSpec, "tuning spec"),
        (TransformLibrary, "transform library"),
    ],
)
def test_of_some_kinds_there_is_one(kind: Callable[..., Step], noun: str) -> None:
    assert refusal(kind(file=SPEC), Flags(compile=("--a",)), kind(file=SPEC)) == (
        f"alpha and gamma both bring a {noun}, and iree-compile takes one; keep one of them"
    )


FAKES = Path(__file__).parent.parent / "fakes"
PROGRAM = program("main x:4\nslope = constant 0.25\ny = each mulf x slope\nreturn y")


def line(text: str) -> str:
    """How a place in fake_rewrites.py is named: `fake_rewrites.py:69`."""
    lines = (FAKES / "fake_rewrites.py").read_text().splitlines()
    return f"fake_rewrites.py:{next(number for number, line in enumerate(lines, start=1) if text in line)}"


def a_request(folder: Path, function: str, **options: Any) -> dict[str, Any]:
    """For a function, of tests/fakes/fake_rewrites.py unless it has a colon."""
    (folder / "in.mlir").write_text(PROGRAM)
    files = {"input": str(folder / "in.mlir"), "output": str(folder / "out"), "answer": str(folder / "answer")}
    function = function if ":" in function else f"fake_rewrites:{function}"
    return {**files, "function": function, "options": options, "entry": "main"}


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
        ("raises", {}, f"raised KeyError: 'two\\nlines' ({line('raise KeyError')})"),
        ("breaks", {}, "left a module that does not verify: 'linalg.generic' op requires attribute 'iterator_types'"),
        ("no_such_package:f", {}, "cannot be imported (ModuleNotFoundError: No module named 'no_such_package')"),
    ],
)
def test_what_a_rewrite_comes_to(
    function: str, options: dict[str, Any], answer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it matched with a module in bytecode; or one phrase with which it was refused, and no module."""
    monkeypatch.syspath_prepend(str(FAKES))
    request = a_request(tmp_path, function, **options)
    if isinstance(answer, str):
        with pytest.raises(Refused) as refused:
            child.rewrite(request)
        assert str(refused.value) == answer
        assert not (tmp_path / "out").exists()
    else:
        assert child.rewrite(request) == answer
        assert (tmp_path / "out").read_bytes().startswith(b"ML\xefR")


def test_the_harness_is_not_needed_and_the_toolchains_own_compiler_is_taken(tmp_path: Path) -> None:
    """In an environment with another iree.compiler, isolated as toolchains are; the rewrite is found beside us."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    python = tmp_path / "env" / "bin" / "python"
    command = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    own = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    (own / "iree").mkdir()
    (own / "iree" / "compiler").symlink_to(next(iter(iree.compiler.__path__)))
    (own / "numpy").symlink_to(Path(sysconfig.get_path("platlib")) / "numpy")
    sites = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), str(FAKES)]
    for function, error in (
        ("tells_whose_compiler", f"raised ValueError: iree.compiler is in {own}/iree/compiler, isolated 1 ("),
        # The child is started by its path, which Python puts first in the search path: `plugin` there is ours.
        ("plugin:package_file", "cannot be imported (ModuleNotFoundError: No module named 'plugin')"),
    ):
        request = {**a_request(tmp_path, function), "sites": sites}
        (tmp_path / "request.json").write_text(json.dumps(request))
        subprocess.run([str(python), "-I", child.__file__, str(tmp_path / "request.json")], check=True, timeout=60)
        assert json.loads((tmp_path / "answer").read_text())["error"].startswith(error)
