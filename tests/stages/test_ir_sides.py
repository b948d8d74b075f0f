"""What a user may call a case of `harness ir`, and what a run has of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import CaseError, HarnessError, RunError, ToolchainError, UsageError
from harness.progress import Silent
from harness.records.run import Build, Failure, ToolchainRecord
from harness.stages import ir_sides
from harness.stages.ir_sides import NamedCase, compile_sides, named_cases
from harness.stages.options import IrOptions, compile_limits
from harness.store.run_directory import RunDirectory
from harness.toolchain import Toolchain
from tests.builders import make_case, make_header
from tests.fakes.fake_toolchain import make_fake_toolchain

STOCK, TILED, LATE = "net/stock@cpu", "net/tiled@cpu", "net/late@cpu"
SUITE, RUN = Path("net.toml"), Path("results/20260101-000000-net")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a suite and a run of another one."""
    monkeypatch.chdir(tmp_path)
    SUITE.touch()
    cases = (make_case(), make_case("tiled"), make_case("late"), replace(make_case("peer"), peer="onnxruntime"))
    compiler = ToolchainRecord(version="0.0.0", revision="", compiler_sha256="cc")
    header = make_header(RUN.name, cases=cases, suite="other.toml", toolchains=(compiler,))
    no_pass = Failure(stage="compile", message="no such pass")
    with RunDirectory.create(Path("results"), header) as directory:
        directory.append(Build(case=STOCK, command=(), cache_key="ab" * 32, module_sha256="aa"))
        directory.append(Build(case=TILED, command=(), cache_key="", failure=no_pass))
    return tmp_path


@pytest.mark.parametrize(
    ("sides", "options", "named"),
    [
        (["net.toml", STOCK], {}, [(SUITE, STOCK, "")]),
        (["gone.toml", STOCK], {}, [(Path("gone.toml"), STOCK, "")]),
        (["latest", STOCK], {}, [(RUN, STOCK, "")]),
        (["latest", f"{STOCK}:3.12.0"], {}, [(RUN, f"{STOCK}:3.12.0", "")]),
        ([], {"suite": SUITE, "case": STOCK}, [(SUITE, STOCK, "")]),
        ([STOCK], {"run": Path("latest")}, [(RUN, STOCK, "")]),
        ([f"latest:{STOCK}"], {}, [(RUN, STOCK, "")]),
        (["a", "b"], {"suite": SUITE}, [(SUITE, "a", ""), (SUITE, "b", "")]),
        (["a:3.1.0", "a:3.2.0"], {"run": RUN}, [(RUN, "a:3.1.0", ""), (RUN, "a:3.2.0", "")]),
        (["latest:a", "net.toml:b"], {}, [(RUN, "a", ""), (SUITE, "b", "")]),
        (["latest:a", "net.toml"], {}, [(RUN, "a", ""), (SUITE, "a", "")]),
        (["latest", "net.toml"], {"case": "a"}, [(RUN, "a", ""), (SUITE, "a", "")]),
        (
            ["iree==3.1", "iree==3.2"],
            {"suite": SUITE, "case": "a"},
            [(SUITE, "a", "iree==3.1"), (SUITE, "a", "iree==3.2")],
        ),
        (["iree==3.1", "iree==3.2", "a"], {"suite": SUITE}, [(SUITE, "a", "iree==3.1"), (SUITE, "a", "iree==3.2")]),
        (["latest", "net.toml", "a"], {}, [(RUN, "a", ""), (SUITE, "a", "")]),
        (["a", "iree==3.2"], {"suite": SUITE}, [(SUITE, "a", ""), (SUITE, "a", "iree==3.2")]),
        (["latest:a", "iree==3.2"], {}, [(RUN, "a", ""), (Path("other.toml"), "a", "iree==3.2")]),
        (["latest:a", "iree==3.2:b"], {}, [(RUN, "a", ""), (Path("other.toml"), "b", "iree==3.2")]),
        (["iree==3.2"], {"run": RUN, "case": "a"}, [(Path("other.toml"), "a", "iree==3.2")]),
    ],
)
def test_names(here: Path, sides: list[str], options: dict[str, Path], named: list[tuple[Path, str, str]]) -> None:
    wanted = tuple(NamedCase(place=place, case=case, release=release) for place, case, release in named)
    assert named_cases(IrOptions(tuple(sides), **options)) == wanted  # type: ignore[arg-type]


def test_the_case_may_be_left_out_where_there_is_one(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ir_sides, "case_names", lambda *_, **__: ["a"])
    assert named_cases(IrOptions((str(SUITE),))) == (NamedCase(place=SUITE, case="a"),)


@pytest.mark.parametrize(
    ("sides", "options", "sentence"),
    [
        ([], {}, "0 cases are given; give one case or two, each as "),
        (["a", "b", "c", "d"], {"suite": SUITE}, "4 cases are given; give one case or two, each as "),
        (["a"], {"suite": SUITE, "run": RUN}, "--suite and --run both say where cases are; leave one of them out"),
        (["nowhere:a"], {}, "nowhere:a: is no suite, run or release; give one case or two"),
        (["iree==3.1", "iree==3.2"], {"case": "a"}, "iree==3.1: is of no suite; give one case or two"),
        (["latest"], {}, "latest: which case is not said; give it with --case, or as latest:CASE"),
    ],
)
def test_what_is_no_name(here: Path, sides: list[str], options: dict[str, Path], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        named_cases(IrOptions(tuple(sides), **options))  # type: ignore[arg-type]
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("case", "compiler", "kind", "sentence"),
    [
        ("net/stok@cpu", "cc", UsageError, "there is no case 'net/stok@cpu'; did you mean \"net/stock@cpu\"?"),
        ("x", "cc", UsageError, f"there is no case 'x'; `harness report {RUN}` shows them all"),
        (
            "net/peer@cpu",
            "cc",
            UsageError,
            "net/peer@cpu is run by the peer 'onnxruntime', which has no IR; name another case",
        ),
        (TILED, "cc", CaseError, f"{TILED} was not compiled in {RUN} (no such pass); name another case"),
        (
            "net/late@cpu",
            "cc",
            CaseError,
            f"net/late@cpu was not compiled in {RUN} (it was left out); name another case",
        ),
        (STOCK, "dd", ToolchainError, "IREE 0.0.0 here has another compiler than the run's; make it again"),
        (
            STOCK,
            "cc",
            RunError,
            f"what it compiled of {STOCK} is no longer in the cache; `harness ir other.toml {STOCK}` compiles it again",
        ),
    ],
    ids=["misspelt", "none", "a peer", "failed", "not compiled", "another compiler", "gone from the cache"],
)
def test_what_a_run_does_not_have(
    here: Path, monkeypatch: pytest.MonkeyPatch, case: str, compiler: str, kind: type[HarnessError], sentence: str
) -> None:
    def installed(*_: object, **__: object) -> tuple[Toolchain]:
        return (replace(make_fake_toolchain(here / "tools"), compiler_sha256=compiler),)

    monkeypatch.setenv("HARNESS_CACHE", str(here / "cache"))
    monkeypatch.setattr(ir_sides, "get_toolchains", installed)
    with pytest.raises(kind) as caught:
        compile_sides([NamedCase(place=RUN, case=case)], compile_limits(), Silent())
    assert str(caught.value).removeprefix(f"{RUN}: ").removeprefix(f"{RUN.name}: ") == sentence
