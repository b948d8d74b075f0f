"""Plugins by registered name, what each does with options, and how options are checked."""

from __future__ import annotations

import datetime
import enum
import importlib
import math
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from harness.errors import ExitCode, SuiteError
from harness.plugins import (
    PLUGINS,
    ExecutablePlugin,
    Flags,
    Plugin,
    PluginFile,
    Rewrite,
    Step,
    TransformSpec,
    apply_plugin,
    package_file,
    written_file,
)
from harness.plugins.options import NoOptions, as_json, check_options
from tests.builders import a_plugin, flag_plugin, register

PACKAGE = "a_plugins_package"
SHARE = flag_plugin("share-concat", "--iree-share", version="2")
TILE, OTHER_TILE = ("tile", "a_package:TILE"), ("tile", "b_package:TILE")
NO_PLUGIN = "is not a harness.plugins.Plugin; ask its package's author"
BROKEN = "repair or remove the package that registers it"


@pytest.mark.parametrize(
    ("name", "points", "sentence"),
    [
        ("tiles", [TILE], "there is no plugin 'tiles'; did you mean \"tile\"?"),
        (
            "unroll",
            [TILE, ("pad", "a_package:PAD")],
            "there is no plugin 'unroll'; known: pad, tile; install the package that brings it",
        ),
        (
            "tile",
            [TILE, OTHER_TILE],
            "plugin 'tile' is registered by a_package:TILE and by b_package:TILE; remove all packages but one",
        ),
        (
            "tile",
            [("tile", "no_such_package:TILE")],
            f"plugin 'tile': no_such_package:TILE cannot be loaded (No module named 'no_such_package'); {BROKEN}",
        ),
        ("tile", [("tile", lambda: SHARE)], f"plugin 'tile': a_package:TILE {NO_PLUGIN}"),
    ],
)
def test_a_name_that_stands_for_no_plugin(
    name: str, points: list[tuple[str, object]], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(monkeypatch, PLUGINS.group, *points)
    with pytest.raises(SuiteError) as caught:
        PLUGINS.find(name, "s.toml")
    assert (caught.value.exit_code, str(caught.value)) == (ExitCode.USAGE, f"s.toml: {sentence}")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("import no_such_dependency", rf"\(No module named 'no_such_dependency'\) \({PACKAGE}/own.py:2\); repair"),
        (
            "PLUGIN = Plugin(name='own', version='1', description='', options=NoOptions, steps=lambda _: {}['sizes'])",
            rf"\(KeyError: 'sizes'\) \({PACKAGE}/own.py:2\); change them",
        ),
    ],
)
def test_an_exception_of_a_package_has_its_file_and_line(
    code: str, error: str, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (package / "own.py").write_text(f"from harness.plugins import NoOptions, Plugin\n{code}\n")
    register(monkeypatch, PLUGINS.group, ("own", f"{PACKAGE}.own:PLUGIN"))
    with pytest.raises(SuiteError, match=error):
        apply_plugin("own", {})
    sys.modules.pop(f"{PACKAGE}.own", None)


WHERE = "s.toml: [variants.wide] plugins"


TileOptions = make_dataclass("TileOptions", [("width", int, 8), ("sizes", tuple[int, ...], (4, 4))], kw_only=True)


def tiling(steps: Callable[[Any], Any]) -> Plugin[Any]:
    return Plugin(name="tile", version="3", description="", options=TileOptions, steps=steps)


def rewriting(function: str, phase: str = "input") -> Plugin[Any]:
    return a_plugin("tile", Rewrite(function=function, phase=phase))


def choosy(options: Any) -> tuple[Step, ...]:
    raise ValueError(f"width {options.width} is not\n a multiple of sizes {options.sizes}")


Install = Callable[[Plugin[Any]], None]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, package: Path) -> Install:
    """Pretend that a package registers this plugin."""
    return lambda plugin: register(monkeypatch, PLUGINS.group, (plugin.name, plugin))


def applied_refusal(name: str, **options: Any) -> str:
    with pytest.raises(SuiteError) as caught:
        apply_plugin(name, options, WHERE)
    message = str(caught.value)
    assert message.startswith(f"{WHERE}: ")
    assert "\n" not in message
    return message.removeprefix(f"{WHERE}: ")


GONE = PluginFile(name="kernel.so", path=Path("/gone/kernel.so"))
NO_FUNCTION = "its rewrite {!r} names no function of an installed package, as in 'package.module:name'"


@pytest.mark.parametrize(
    ("plugin", "sentence"),
    [
        (tiling(lambda _: Flags(compile=())), ": its steps are no tuple of steps; ask its package's author"),
        (
            tiling(choosy),
            " refuses these options (ValueError: width 8 is not a multiple of sizes (4, 4)); change them or repair it",
        ),
        (
            tiling(lambda _: (TransformSpec(file=package_file(PACKAGE, "spec.mlir")),)),
            f": package {PACKAGE} has no file spec.mlir; install it again, or ask its author",
        ),
        (
            a_plugin("tile", ExecutablePlugin(file=GONE)),
            ": /gone/kernel.so cannot be read (No such file or directory); install its package again",
        ),
        (
            rewriting(f"{PACKAGE}.rewrites:fold", "inputs"),
            ": its rewrite stands at phase 'inputs', where none can; did you mean \"input\"?",
        ),
        *(
            (rewriting(function), f": {NO_FUNCTION.format(function)} (ImportError: it is in no file)")
            for function in ("no_such_package:fold", f"{PACKAGE}.rewrites", "sys:exit")
        ),
    ],
)
def test_what_a_plugin_may_not_do(installed: Install, plugin: Plugin[Any], sentence: str) -> None:
    installed(plugin)
    assert applied_refusal("tile") == f"plugin 'tile'{sentence}"


def test_options_and_names_are_checked_with_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    assert applied_refusal("tuning-spec", spec=" ") == "tuning-spec: spec is empty; give it the text of a tuning spec"
    register(monkeypatch, PLUGINS.group, ("unfold", a_plugin("fold")))
    assert applied_refusal("unfold") == "plugin 'unfold' calls itself 'fold'; ask its package's author"


def test_editing_a_source_of_the_rewrites_package_gives_another_hash(installed: Install, package: Path) -> None:
    installed(rewriting(f"{PACKAGE}.rewrites:fold"))

    def sources() -> str:
        return apply_plugin("tile", {}).sources_sha256

    before = sources()
    assert sources() == before
    # The module itself is not imported by the harness.
    (package / "rewrites.py").write_text("raise RuntimeError('iree.compiler is in the toolchain, not here')\n")
    edited = sources()
    (package / "helpers.py").write_text("FACTOR = 2\n")
    with_helper = sources()
    (package / "notes.txt").write_text("no Python")
    assert len({before, edited, with_helper}) == 3
    assert sources() == with_helper


def test_a_file_is_known_by_its_content(package: Path, tmp_path: Path) -> None:
    (package / "specs").mkdir()
    (package / "specs" / "spec.mlir").write_bytes(b"module {}\r\n\xff")
    file = package_file(PACKAGE, "specs/spec.mlir")
    (tmp_path / "work").mkdir()
    file.put_into(tmp_path / "work")
    (copy,) = (tmp_path / "work").iterdir()
    assert (copy.read_bytes(), copy.name) == (b"module {}\r\n\xff", file.unique_name)
    names = {written_file("spec.mlir", text).unique_name for text in ("module {}", "module { } // é", "")}
    assert len({*names, file.unique_name}) == 4
    assert all(re.fullmatch(r"spec-[0-9a-f]{16}\.mlir", name) for name in names)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package's folder, with a module of rewrites."""
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "rewrites.py").write_text("def fold(module):\n    return 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield folder
    sys.modules.pop(PACKAGE, None)


Positive = Annotated[int, Field(ge=1)]
LONG = "a\nb" * 99


class Order(enum.Enum):
    """One of two."""

    ROWS = "rows"
    COLUMNS = "columns"


@dataclass(frozen=True, kw_only=True)
class Options:
    """One of every kind of value."""

    width: Annotated[int, Field(ge=1, le=64)]
    scale: Annotated[float, Field(allow_inf_nan=False)] = 1.0
    name: str = "x"
    side: Literal["left", "right"] = "left"
    order: Order = Order.ROWS
    tiles: tuple[Positive, ...] = (4, 4)
    limits: dict[str, int] = field(default_factory=dict)
    since: datetime.date | None = None

    def __post_init__(self) -> None:
        if self.name == "odd" and self.width % 2 == 0:
            raise ValueError(f"width is {self.width}, and name is 'odd'; change one of them")


def checked(kind: type[Any] = Options, **values: Any) -> Any:
    return check_options(kind, values, where="w", owner="plugin 'tile'", noun="option")


def refusal(kind: type[Any] = Options, **values: Any) -> str:
    with pytest.raises(SuiteError) as caught:
        checked(kind, **values)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix("w")


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"widht": 4}, ".widht is not an option of plugin 'tile'; did you mean \"width\"?"),
        ({"width": 0}, ".width: input should be greater than or equal to 1, not '0'"),
        ({"width": True}, ".width: input should be a valid integer, not 'True'"),
        ({"scale": math.nan}, ".scale: input should be a finite number, not 'nan'"),
        ({"tiles": [4, 0]}, ".tiles[1]: input should be greater than or equal to 1, not '0'"),
        ({"side": LONG}, f".side: input should be 'left' or 'right', not {LONG[:60]!r}"),
        ({"name": "odd"}, ": width is 8, and name is 'odd'; change one of them"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(values: dict[str, Any], sentence: str) -> None:
    assert refusal(**{"width": 8, **values}) == sentence


def test_what_has_no_default_is_asked_for_and_where_there_is_nothing_to_choose_it_says_so() -> None:
    assert refusal() == ".width is missing; plugin 'tile' needs it"
    assert refusal(NoOptions, x=1) == ".x is not an option of plugin 'tile'; it has none"


Unknowable = make_dataclass("Unknowable", [("lock", "threading.Lock")], kw_only=True)  # of a type that is not known


@pytest.mark.parametrize("kind", [Unknowable, int, dict])
def test_a_class_that_cannot_be_checked_by_is_its_authors_to_mend(kind: type) -> None:
    assert refusal(kind).startswith(": the options of plugin 'tile' cannot be checked (")
    assert refusal(kind).endswith("); ask its package's author")


def test_values_are_as_toml_writes_them_and_as_json_identify_a_case() -> None:
    since = datetime.date(2026, 11, 21)
    given: dict[str, Any] = {"width": 8, "order": "columns", "tiles": [1, 2], "limits": {"a": 1}, "since": since}
    defaults = {"scale": 1.0, "name": "x", "side": "left"}
    options = checked(**given)
    assert (options.tiles, options.order, options.since) == ((1, 2), Order.COLUMNS, since)
    assert as_json(options) == {**given, **defaults, "since": "2026-11-21"}


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(ValueError, match="Unable to serialize unknown type"):
        as_json(make_dataclass("Anything", [("thing", Any, object())])())
