"""A search whose compiler and clock are rules of the test's: programs take what the test says, and no time passes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from harness.bisect.trials import Place
from harness.bisect.variants import CompileConfig
from harness.compare import samplers
from harness.compare.samplers import Module
from harness.compile.iree_compile import MODULE_FILE
from harness.explain.profile import Profile
from harness.measure import Group, LoadableModule
from harness.progress import Progress
from harness.records.bisection import Trial
from harness.records.comparison import Verdict
from harness.records.run import Failure, Lost, Round, Turn
from harness.stages import tune_session, tuning_lowering
from harness.stages.options import TuneOptions
from harness.stages.tune_session import START, Form, Raced, TuneSession, TuneTarget, Untimed
from harness.store.work_directory import Begun, TuneDirectory
from harness.suite.load import Suite
from harness.tune.changes import Change
from harness.tune.dispatches import Compiled, Dispatch, Refused
from harness.tune.tiles import Configuration, Root
from tests.builders import a_loadable, a_suite, make_case, make_round
from tests.compare.runs import a_build, a_side
from tests.fakes.fake_toolchain import make_fake_toolchain


def a_target(folder: Path, suite: Suite) -> TuneTarget:
    """The suite's `net`, from its stock variant on, with scripted tools."""
    tools, device = make_fake_toolchain(folder / "tools"), suite.devices[0]
    return TuneTarget(suite=suite, model="net", device=device, start="stock", config=CompileConfig(), toolchain=tools)


def a_directory(folder: Path) -> TuneDirectory:
    """That of a search which begins."""
    return TuneDirectory.open(folder / "net@cpu", Begun(created="", machine="", options={}, command=()))


class Scripted(TuneSession):
    """A search whose races are real but for the worker; use it as a context manager."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
        chosen = TuneOptions(Path("small.toml"), **options)
        super().__init__(chosen, a_target(folder, a_suite()), a_directory(folder), Progress())
        self.ms: dict[str, float] = {}  # What programs take, by code: flags and then specs, joined; "" of the start
        self.code_of: Callable[[CompileConfig], str] = lambda config: " ".join(
            [*sorted(config.flags), *(use.options["spec"] for use in config.plugins)]
        )
        self.broken: dict[str, Untimed] = {}  # Programs that cannot be timed, by code
        self.lost: dict[str, str] = {}  # Why some cannot be called in a race, by code
        self.batches: dict[str, list[str]] = {}  # What was compiled, in order
        self.raced: list[list[str]] = []  # The names in each generation, in order
        self.seconds: dict[str, float] = {}  # That races were given, by name of the race
        self.verdicts: dict[tuple[str, str], Verdict] = {}  # By names of head and base; `improved` of others
        # What a generation of a race and a program take on the search's clock; another, by code
        self.race_s, self.compile_s, self.takes_s = 0.1, 0.1, dict[str, float]()
        self.now = 0.0
        clock: Any = type("Clock", (), {"monotonic": lambda _: self.now})()
        monkeypatch.setattr(tune_session, "time", clock)
        monkeypatch.setattr(samplers, "measure_generation", self._measure)
        self.case = make_case(START)

    def loadable_of(self, name: str, code: str) -> LoadableModule:
        """A module whose path is its code."""
        return a_loadable(name, self.target.toolchain, module=Path(code))

    def form(self, name: str, *flags: str, config: CompileConfig | None = None) -> Form:
        """A form with these flags, each a change of its own; or a program as compiled, with a config."""
        asked = config or CompileConfig(flags=flags)
        case, code = make_case(name, compile_flags=asked.flags), self.code_of(asked)
        loadable = self.loadable_of(case.name, code)
        module = Module(case=case, loadable=loadable, mlir=Path("net.mlir"), files=(), build=a_build(case))
        place = Place(name=name, side=a_side(case, label=name), case=case, toolchain=self.target.toolchain)
        changes = tuple(map(a_change, flags))
        return Form(name=name, config=asked, place=place, module=module, code=code, changes=changes)

    def __enter__(self) -> Scripted:
        self.directory.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.directory.__exit__()

    def compile(
        self, batch: str, configs: Mapping[str, CompileConfig], seconds: float | None = None
    ) -> dict[str, Form | Untimed]:
        """What the test's tables say."""
        assert batch not in self.batches, "a batch is compiled once"
        self.batches[batch] = list(configs)
        limit_s = seconds or math.inf
        take_s = {name: self.takes_s.get(self.code_of(config), self.compile_s) for name, config in configs.items()}
        self.stages["compile"] = self.stages.get("compile", 0.0) + sum(min(each, limit_s) for each in take_s.values())
        late = {name: Untimed(reason="late", late=True) for name, s in take_s.items() if s > limit_s}
        return {
            name: late.get(name) or self.broken.get(self.code_of(config)) or self.form(name, config=config)
            for name, config in {START: self.target.config, **configs}.items()
        }

    def race(self, name: str, *args: Any, seconds: float, **kwargs: Any) -> Raced:
        """A real race, whose seconds are kept."""
        self.seconds[name] = seconds
        return super().race(name, *args, seconds=seconds, **kwargs)

    def confirm(self, head: Form, base: Form, *_: object) -> Trial:
        """The verdict that the test gave."""
        verdict = self.verdicts.get((head.name, base.name), "improved")
        return Trial(head=head.name, base=base.name, floor=0.01, verdict=verdict, ratio=0.5)

    def _measure(self, group: Group, number: int, *_: object, **__: object) -> Iterator[Round | Lost]:
        self.raced.append(sorted(case.name for case in group.cases))
        self.now += self.race_s
        turns = []
        for case in group.cases:
            code = str(cast("LoadableModule", case).module).removeprefix(".")
            if code in self.lost:
                yield Lost(case=case.name, generation=number, failure=Failure(stage="measure", message=self.lost[code]))
                continue
            ns = round(1e6 * self.ms.get(code, 1.0))
            turns.append(Turn(case=case.name, calls=1, wall_ns=ns, cpu_ns=ns))
        yield replace(make_round(0), group=group.name, generation=number, turns=tuple(turns))


def a_change(flag: str, excludes: tuple[str, ...] = ()) -> Change:
    """A flag that a search may give."""
    return Change(
        name=flag.strip("-"),
        parts=(flag,),
        purpose="",
        config=CompileConfig(flags=(flag,)),
        excludes=frozenset(excludes),
    )


def found_in(values: Any, name: str) -> Any:
    """Of several values the one with a name."""
    return next(each for each in cast("list[Any]", values) if each.name == name)


ROOT = Root(
    op="linalg.matmul",
    loops=(),
    operands=(),
    element_bits=32,
    innermost=1,
    matcher="",
    pipeline="Own",
    tiles={"tile": (0,)},
)


def a_dispatch(name: str, *, places: tuple[str, ...] = (), why: str = "") -> Dispatch:
    """A dispatch, whose key and operation are its name; with a reason it has no root."""
    return Dispatch(name=name, operation=name, key=name, places=places or (name,), root=None if why else ROOT, why=why)


def tile(size: int) -> Configuration:
    """A configuration whose text is `Tile, tile = [8]`."""
    return Configuration(pipeline="Tile", tiles={"tile": (size,)})


class Dispatches:
    """The dispatches of a form and what compiling them gives; a candidate's code is `NAME 8` with a tile size of 8."""

    def __init__(self, session: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ns: dict[str, float] = {}  # What dispatches take in the profile of the form, by name
        self.taken: list[Dispatch] = []
        self.sizes: tuple[int, ...] = (4, 8)  # Tile sizes that come first; near those beside one
        self.near: dict[int, tuple[int, ...]] = {}
        self.refused: dict[str, str] = {}  # Why candidates do not compile, by code
        self.same: dict[str, str] = {}  # What the code of candidates is instead, by code
        self.unmatched: set[str] = set()  # Candidates whose spec matches nothing, by code
        self.compiled: list[str] = []  # All candidates, in order
        self.codes: dict[Path, str] = {}
        stand_ins: dict[str, Any] = {
            "can_profile": lambda _: True,
            "time_module": lambda *_: 1e6,
            "profile_module": lambda *_, **__: Profile(calls=1, call_ns=1e6, dispatch_ns=self.ns),
            "take_out": lambda *_: self.taken,
            "fitting": lambda _, won, __: tuple(won),
            "first_configurations": lambda *_: tuple(map(tile, self.sizes)),
            "neighbours": lambda _, best, __: tuple(map(tile, self.near.get(best.tiles["tile"][0], ()))),
            "spec_of": lambda entries: " ".join(str(best.tiles["tile"][0]) for _, best in entries),
            "compile_candidate": self._compile,
            "as_loadable": lambda name, _, made, *__, **___: (session.loadable_of(name, self.codes[made]), 1),
        }
        for name, stand_in in stand_ins.items():
            monkeypatch.setattr(tuning_lowering, name, stand_in)

    def _compile(self, dispatch: Dispatch, spec: str | None, _: object, folder: Path, __: object) -> Compiled | Refused:
        code = f"{dispatch.name} {spec or 'own'}"
        self.compiled.append(code)
        if code in self.refused:
            return Refused(reason=self.refused[code])
        module = folder / MODULE_FILE
        folder.mkdir(parents=True)
        module.touch()
        self.codes[module] = self.same.get(code, code)
        return Compiled(module=module, sha256=self.codes[module], matched=int(code not in self.unmatched))
