"""The cache key: everything that decides a module's bytes, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.compile import CompileRequest, cache_key
from harness.plugins import ExecutablePlugin, written_file
from harness.process import Limits
from harness.toolchain import Toolchain
from tests.builders import a_plugin, applied, flag_plugin, make_case

_FLAGS = st.lists(st.sampled_from(["--a", "--b=1", "--c=x", "--d=true", "--e=false"]), unique=True)


def request_with(*flags: str, **changes: Any) -> CompileRequest:
    """A request that is never run, so that nothing in it has to exist."""
    nowhere = Path("nowhere")
    toolchain = Toolchain(
        version="3.13.0",
        revision="",
        compiler_sha256="cc" * 32,
        python=nowhere,
        compiler_tools=nowhere,
        runtime_tools=nowhere,
    )
    request = CompileRequest(
        case=make_case(compile_flags=flags),
        toolchain=toolchain,
        model=nowhere,
        model_sha256="aa" * 32,
        function="main",
        host_cpu="a processor",
        limits=Limits(),
    )
    return replace(request, **changes)


FOLD, PAD = applied(flag_plugin("fold")), applied(flag_plugin("pad"))
BASE = request_with("--a", "--b=1")


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(request_with("--a", "--b=2"), id="a flag's value"),
        pytest.param(request_with("--a"), id="a flag less"),
        pytest.param(request_with("--a", "--b=1", model_sha256="bb" * 32), id="the model"),
        pytest.param(request_with("--a", "--b=1", function="other"), id="the entry function"),
        pytest.param(request_with("--a", "--b=1", plugins=(FOLD,)), id="a plugin"),
        pytest.param(
            request_with("--a", "--b=1", toolchain=replace(BASE.toolchain, compiler_sha256="dd" * 32)),
            id="the compiler's binary",
        ),
        pytest.param(
            request_with("--a", "--b=1", toolchain=replace(BASE.toolchain, version="3.14.0")),
            id="the compiler's version",
        ),
    ],
)
def test_what_decides_the_code_changes_the_key(other: CompileRequest) -> None:
    assert cache_key(other) != cache_key(BASE)


@pytest.mark.parametrize(
    "same",
    [
        pytest.param(replace(BASE, case=replace(BASE.case, name="other/name@here", device="here")), id="the name"),
        pytest.param(replace(BASE, case=replace(BASE.case, run_flags=("--x=1",))), id="flags of the runtime"),
        pytest.param(replace(BASE, limits=Limits(seconds=1)), id="the limits"),
        pytest.param(replace(BASE, model=Path("elsewhere")), id="where the model lies"),
        pytest.param(replace(BASE, host_cpu="another processor"), id="the machine, where no flag asks for it"),
        pytest.param(request_with("-a", "--b=1"), id="one dash or two"),
        pytest.param(request_with("--a=true", "--b=1"), id="a true that is written out"),
    ],
)
def test_what_does_not_decide_the_code_leaves_the_key(same: CompileRequest) -> None:
    assert cache_key(same) == cache_key(BASE)


@given(flags=_FLAGS, random=st.randoms(use_true_random=False))
def test_the_order_of_different_flags_does_not_matter(flags: list[str], random: Any) -> None:
    shuffled = list(flags)
    random.shuffle(shuffled)
    assert cache_key(request_with(*shuffled)) == cache_key(request_with(*flags))


def test_the_order_of_a_repeated_flag_does() -> None:
    """`--iree-hal-target-device` given twice names the first device and the second."""
    assert cache_key(request_with("--dev=a", "--dev=b")) != cache_key(request_with("--dev=b", "--dev=a"))


def test_the_order_of_plugins_does() -> None:
    first = request_with(plugins=(FOLD, PAD))
    assert cache_key(first) != cache_key(replace(first, plugins=(PAD, FOLD)))


def test_the_version_the_options_and_the_sources_of_a_plugin_do() -> None:
    others = [
        applied(flag_plugin("fold", version="2")),
        replace(FOLD, options={"deep": True}),
        replace(FOLD, sources_sha256="ee" * 32),
    ]
    keys = {cache_key(request_with(plugins=(one,))) for one in (FOLD, *others)}
    assert len(keys) == 4


def test_the_bytes_of_a_plugins_files_do() -> None:
    keys = {
        cache_key(request_with(plugins=(applied(a_plugin("link", ExecutablePlugin(file=written_file("x.so", text)))),)))
        for text in ("one", "two")
    }
    assert len(keys) == 2


@pytest.mark.parametrize("flag", ["--iree-llvmcpu-target-cpu=host", "--iree-llvmcpu-target-cpu-features=host"])
def test_the_processor_counts_where_a_flag_says_host(flag: str) -> None:
    here = request_with(flag)
    assert cache_key(here) != cache_key(replace(here, host_cpu="another processor"))


def test_one_text_split_otherwise_is_another_key() -> None:
    assert cache_key(request_with("--a", "--b")) != cache_key(request_with("--a--b"))
    joined, split = applied(flag_plugin("ab")), (applied(flag_plugin("a")), applied(flag_plugin("b")))
    assert cache_key(request_with(plugins=(joined,))) != cache_key(request_with(plugins=split))


def test_the_content_of_a_file_that_a_flag_names_counts(tmp_path: Path) -> None:
    spec = tmp_path / "spec.mlir"
    spec.write_text("module {}")
    before = cache_key(request_with(f"--iree-preprocessing-transform-spec-filename={spec}"))
    assert cache_key(request_with(f"--iree-preprocessing-transform-spec-filename={spec}")) == before
    spec.write_text("module { }")
    assert cache_key(request_with(f"--iree-preprocessing-transform-spec-filename={spec}")) != before
