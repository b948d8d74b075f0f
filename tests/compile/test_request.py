"""The cache key: everything that decides a module's bytes, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.compile import CompileRequest, cache_key
from harness.plugins import ExecutablePlugin, Rewrite, written_file
from harness.plugins.chain import arrange
from harness.process import Limits
from harness.toolchain import Toolchain
from tests.builders import a_plugin, applied, flag_plugin, make_case

FLAGS = st.lists(st.sampled_from(["--a", "--b=1", "--c=x", "--d=true", "--e=false"]), unique=True)
NOWHERE = Path("nowhere")


def request_with(*flags: str, **changes: Any) -> CompileRequest:
    """A request that is never run, so that nothing in it has to exist."""
    toolchain = Toolchain(
        version="3.13.0",
        revision="",
        compiler_sha256="cc" * 32,
        python=NOWHERE,
        compiler_tools=NOWHERE,
        runtime_tools=NOWHERE,
    )
    request = CompileRequest(
        case=make_case(compile_flags=flags),
        toolchain=toolchain,
        model=NOWHERE,
        model_sha256="aa" * 32,
        function="main",
        host_cpu="a processor",
        limits=Limits(),
    )
    return replace(request, **changes)


def rewriting(function: str = "times", phase: str = "input", **options: Any) -> CompileRequest:
    plugin = applied(a_plugin("p", Rewrite(function=f"rewrites:{function}", phase=phase, arguments=options)))
    return replace(BASE, plugins=(plugin,), arranged=arrange((plugin,), (), ""))


def linking(text: str) -> CompileRequest:
    return replace(BASE, plugins=(applied(a_plugin("link", ExecutablePlugin(file=written_file("x.so", text)))),))


FOLD, PAD, FOLD_PAD = (applied(flag_plugin(name)) for name in ("fold", "pad", "foldpad"))
BASE = request_with("--a", "--b=1")
HOST = request_with("--iree-llvmcpu-target-cpu=host")
HOST_FEATURES = request_with("--iree-llvmcpu-target-cpu-features=host")
ELSEWHERE = "another processor"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(BASE, request_with("--a", "--b=2"), id="a flag's value"),
        pytest.param(BASE, request_with("--a"), id="a flag less"),
        pytest.param(request_with("--a", "--b"), request_with("--a--b"), id="one text split otherwise"),
        pytest.param(request_with("--d=a", "--d=b"), request_with("--d=b", "--d=a"), id="the order of a repeated flag"),
        pytest.param(BASE, replace(BASE, model_sha256="bb" * 32), id="the model"),
        pytest.param(BASE, replace(BASE, function="other"), id="the entry function"),
        pytest.param(
            BASE, replace(BASE, toolchain=replace(BASE.toolchain, compiler_sha256="dd" * 32)), id="the binary"
        ),
        pytest.param(BASE, replace(BASE, toolchain=replace(BASE.toolchain, version="3.14.0")), id="the version"),
        pytest.param(BASE, replace(BASE, plugins=(FOLD,)), id="a plugin"),
        *(
            pytest.param(replace(BASE, plugins=(FOLD,)), replace(BASE, plugins=(other,)), id=f"a plugin's {what}")
            for what, other in {
                "version": applied(flag_plugin("fold", version="2")),
                "options": replace(FOLD, options={"deep": True}),
                "sources": replace(FOLD, sources_sha256="ee" * 32),
            }.items()
        ),
        pytest.param(replace(BASE, plugins=(FOLD, PAD)), replace(BASE, plugins=(PAD, FOLD)), id="plugins' order"),
        pytest.param(replace(BASE, plugins=(FOLD, PAD)), replace(BASE, plugins=(FOLD_PAD,)), id="plugins' names"),
        pytest.param(linking("one"), linking("two"), id="the bytes of a plugin's file"),
        pytest.param(rewriting(), rewriting("plus"), id="a rewrite"),
        pytest.param(rewriting(), rewriting(phase="flow"), id="a rewrite's phase"),
        pytest.param(rewriting(), rewriting(factor=3.0), id="a rewrite's options"),
        pytest.param(rewriting(), replace(rewriting(), host_cpu=ELSEWHERE), id="the machine that rewrites"),
        pytest.param(HOST, replace(HOST, host_cpu=ELSEWHERE), id="the machine, for =host"),
        pytest.param(HOST_FEATURES, replace(HOST_FEATURES, host_cpu=ELSEWHERE), id="its features, for =host"),
    ],
)
def test_what_decides_the_code_changes_the_key(first: CompileRequest, second: CompileRequest) -> None:
    assert cache_key(first) != cache_key(second)


@pytest.mark.parametrize(
    "same",
    [
        pytest.param(replace(BASE, case=replace(BASE.case, name="other/name@here", device="here")), id="the name"),
        pytest.param(replace(BASE, case=replace(BASE.case, run_flags=("--x=1",))), id="flags of the runtime"),
        pytest.param(replace(BASE, limits=Limits(seconds=1)), id="the limits"),
        pytest.param(replace(BASE, model=Path("elsewhere")), id="where the model lies"),
        pytest.param(replace(BASE, host_cpu=ELSEWHERE), id="the machine, where no flag asks for it"),
        pytest.param(request_with("-a", "--b=1"), id="one dash or two"),
        pytest.param(request_with("--a=true", "--b=1"), id="a true that is written out"),
    ],
)
def test_what_does_not_decide_the_code_leaves_the_key(same: CompileRequest) -> None:
    assert cache_key(same) == cache_key(BASE)


@given(flags=FLAGS, random=st.randoms(use_true_random=False))
def test_the_order_of_different_flags_does_not_matter(flags: list[str], random: Any) -> None:
    shuffled = list(flags)
    random.shuffle(shuffled)
    assert cache_key(request_with(*shuffled)) == cache_key(request_with(*flags))


def test_the_content_of_a_file_that_a_flag_names_counts(tmp_path: Path) -> None:
    spec = tmp_path / "spec.mlir"
    request = request_with(f"--iree-preprocessing-transform-spec-filename={spec}")
    spec.write_text("module {}")
    before = cache_key(request)
    assert cache_key(request) == before
    spec.write_text("module { }")
    assert cache_key(request) != before


def test_a_flag_too_long_for_a_path_names_no_file() -> None:
    assert cache_key(request_with(f"--x=/{'y' * 5000}"))
