"""Which case of which sides a command line asks for, and what is said where that is not clear."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.compare import sides
from harness.compare.pairs import Side
from harness.errors import Interrupted, UsageError
from harness.records.run import Failure
from harness.stages import session as sides_session
from harness.stages.explaining import ExplanationSession, pair_of_runs, pair_of_variants
from harness.stages.options import ExplainOptions, RunOptions
from harness.stages.session import going_on
from harness.store.folders import find_folder
from harness.store.run_directory import RunDirectory
from harness.store.work_directory import ExplanationDirectory
from tests.builders import make_header
from tests.compare.runs import a_case, a_side
from tests.fakes.fake_toolchain import make_fake_toolchain

STOCK, FAST, INERT = a_case("stock", baseline=True), a_case("fast", baseline=False), a_case("inert", baseline=False)
OTHER = [a_case(variant, device="gpu", baseline=variant == "stock") for variant in ("stock", "fast")]
SIDE = a_side(STOCK, FAST, INERT, label="results/run")
BROKEN = a_side(STOCK, FAST, INERT, failures={STOCK.name: Failure(stage="compile", message="no")})
TWO_DEVICES = a_side(STOCK, FAST, *OTHER, label="results/run")


@pytest.mark.parametrize(
    ("words", "options", "sentence"),
    [
        ("a b c d", {}, "4 words are given, and harness explain takes base, head and the case"),
        ("a", {}, "give two sides and a case, as in `harness explain"),
        ("a b c", {"case": "d"}, "c and --case d both say which case is meant; leave one of them out"),
        ("a b", {"variants": ("fast",)}, "--variant is for variants of one run; give --within too"),
        ("", {"within": True, "variants": ("fast",)}, "or one run with --within and --variant"),
        ("a b c", {"within": True}, "3 words are given, and harness explain takes a run and the case with --within"),
        ("a", {"within": True, "variants": ("a", "b", "c")}, "--variant is given 3 times, and there are two sides"),
    ],
)
def test_words_that_do_not_go_together(words: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        ExplanationSession(ExplainOptions(tuple(words.split()), **options))
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("side", "variants", "case", "base", "head"),
    [
        (SIDE, ("fast",), None, "net/stock@cpu", "net/fast@cpu"),
        (SIDE, (), "net/fast@cpu", "net/stock@cpu", "net/fast@cpu"),
        (SIDE, ("fast", "inert"), None, "net/fast@cpu", "net/inert@cpu"),
        (TWO_DEVICES, ("fast",), "net/fast@gpu", "net/stock@gpu", "net/fast@gpu"),
        (TWO_DEVICES, ("stock", "fast"), "net/stock@gpu", "net/stock@gpu", "net/fast@gpu"),
        (BROKEN, ("inert",), None, "net/fast@cpu", "net/inert@cpu"),
    ],
)
def test_a_variant_and_what_it_is_held_against(
    side: Side, variants: tuple[str, ...], case: str | None, base: str, head: str
) -> None:
    of_base, of_head = pair_of_variants(side, variants, case).both
    assert (of_base.name, of_head.name) == (base, head)


BASE, HEAD = a_side(STOCK, FAST, label="results/base"), a_side(STOCK, FAST, INERT, label="results/head")
NO_BASELINE = a_side(FAST, label="results/run")


@pytest.mark.parametrize(
    ("sides", "variants", "case", "sentence"),
    [
        ((SIDE,), (), None, "which variant is not said; give --variant or a case, one of net/fast@cpu, net/inert@cpu"),
        ((SIDE,), ("fats",), None, "has no variant 'fats'; did you mean \"fast\"?"),
        ((SIDE,), ("stock",), None, "net/stock@cpu is the baseline itself; name another variant with --variant"),
        ((SIDE,), ("fast",), "net/slow@gpu", "there is no case 'net/slow@gpu'"),
        ((TWO_DEVICES,), ("fast",), None, "which case is not said; give --case, one of net/fast@cpu, net/fast@gpu"),
        ((NO_BASELINE,), ("fast",), None, "net@cpu has no baseline; name two variants"),
        ((BASE, HEAD), (), None, "which case is not said; give it behind the sides, one of net/stock@cpu, net/fast"),
        ((BASE, HEAD), (), "net/fats@cpu", "there is no case 'net/fats@cpu'; did you mean \"net/fast@cpu\"?"),
        ((BASE, HEAD), (), "net/inert@cpu", "results/base has no case 'net/inert@cpu', so there is nothing to hold "),
    ],
)
def test_a_case_that_is_not_clear(
    sides: tuple[Side, ...], variants: tuple[str, ...], case: str | None, sentence: str
) -> None:
    with pytest.raises(UsageError) as caught:
        pair_of_runs(sides[0], sides[1], case) if len(sides) == 2 else pair_of_variants(sides[0], variants, case)
    assert sentence in str(caught.value)


def test_the_case_of_two_runs() -> None:
    base = a_side(STOCK, label="results/base")
    assert pair_of_runs(base, HEAD, None).name == "net/stock@cpu"
    assert pair_of_runs(base, HEAD, "net/stock@cpu").both == (STOCK, STOCK)


SUITE = """
name = "small"
baseline = "stock"
peers = ["onnxruntime"]
[models.net]
mlir = "net.mlir"
function = "main"
inputs = [{ shape = [2] }]
[variants.stock]
[devices.cpu]
uri = "local-sync"
backend = "llvm-cpu"
"""


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ExplainOptions:
    """Of two releases and a suite with one case: sides are begun and stopped."""

    def run_suite(options: RunOptions, *_: object, on_begin: Callable[[RunDirectory], None], **__: object) -> Path:
        assert options.patterns == ("net/stock@cpu",)
        on_begin(RunDirectory.create(tmp_path / "results", make_header()))
        raise Interrupted("interrupted")

    monkeypatch.setattr(sides_session, "run_suite", run_suite)
    tools = [make_fake_toolchain(tmp_path / "tools")]
    monkeypatch.setattr(sides, "get_toolchains", lambda names, **_: tools * len(names))
    suite = tmp_path / "small.toml"
    suite.write_text(SUITE)
    (tmp_path / "net.mlir").touch()
    return ExplainOptions(("iree==3.10.0", "iree==3.12.0"), suite=suite, results=tmp_path / "results", seed=7)


def test_the_case_may_be_left_out_where_a_suite_has_one_and_it_goes_on_with_what_was_begun(
    options: ExplainOptions,
) -> None:
    with pytest.raises(Interrupted) as caught, ExplanationSession(options, ("explain",)) as session:
        session.asked()
    path = find_folder("latest", options.results, kind="explanation", unfinished=True)
    assert str(caught.value) == f"interrupted; go on with `harness explain --resume {path}`"
    with ExplanationDirectory.resume(path) as folder:
        assert list(folder.runs()) == ["0.0.0"]
    again, _ = going_on(ExplanationDirectory, ExplainOptions(resume=path, quiet=True))
    assert (again.words, again.seed, again.quiet) == (options.words, 7, True)
    with pytest.raises(UsageError, match="goes on with the explanation's own settings; leave out seed"):
        going_on(ExplanationDirectory, ExplainOptions(resume=path, seed=3))


def test_the_case_may_stand_behind_the_sides(options: ExplainOptions) -> None:
    asked = ExplanationSession(replace(options, words=(*options.words, "net/stock@cpu"))).options
    assert (asked.words, asked.case) == (options.words, "net/stock@cpu")


def test_what_the_suite_of_two_releases_does_not_say_is_said_before_anything_is_compiled(
    options: ExplainOptions,
) -> None:
    assert options.suite is not None
    options.suite.write_text(f"{SUITE}\n[variants.fast]\n")
    with pytest.raises(UsageError, match=r"one of net/stock@cpu, net/fast@cpu$"):
        ExplanationSession(options).asked()
    misspelt = replace(options, case="net/stok@cpu")
    with pytest.raises(UsageError, match=r"there is no case 'net/stok@cpu'; did you mean \"net/stock@cpu\"\?$"):
        ExplanationSession(misspelt).asked()
