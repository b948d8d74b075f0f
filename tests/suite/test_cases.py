"""A suite's cases: models x variants x devices, less what the matrix and the user leave out, named and in order."""

from dataclasses import replace
from typing import Any

import pytest

from harness.errors import SuiteError, UsageError
from harness.models.model import Expectation, Model
from harness.plugins import Applied
from harness.records.case import Case, Gate
from harness.suite.cases import across_toolchains, case_meant, parse_shard, suits, unknown_flags
from harness.suite.load import Device, FlagSet, Suite, Variant
from harness.suite.schema import PeerTable, PluginTable
from tests.builders import a_device, a_model, a_suite, a_variant, applied, flag_plugin, make_case
from tests.suite.conftest import WriteSuite, names, plan


def suite_with(**fields: Any) -> Suite:
    """Two models x two variants x two devices."""
    return a_suite(
        a_variant("stock"),
        a_variant("fast", tags=("new",)),
        models=(a_model("small"), a_model("big", tags=("vision",))),
        devices=(a_device("cpu"), a_device("gpu", tags=("slow-lane",))),
        **fields,
    )


ONNXRUNTIME = PeerTable(name="onnxruntime")
EVERY_CASE = [
    *("small/stock@cpu", "small/fast@cpu", "small/stock@gpu", "small/fast@gpu"),
    *("big/stock@cpu", "big/fast@cpu", "big/stock@gpu", "big/fast@gpu"),
]


def test_cases_go_model_by_model_and_device_by_device_with_the_baseline_first() -> None:
    cases = plan(suite_with())
    assert names(cases) == EVERY_CASE
    assert [case.group for case in cases[::2]] == ["small@cpu", "small@gpu", "big@cpu", "big@gpu"]
    assert [case.baseline for case in cases] == [True, False] * 4
    assert names(plan(replace(suite_with(), variants=suite_with().variants[::-1]))) == EVERY_CASE


def test_a_case_has_all_that_a_run_must_know() -> None:
    device = a_device("pool", uri="local-task", more_uris=("vulkan",), pin=True, tags=("cpu", "all"))
    suite = a_suite(
        a_variant("tiled", tags=("tiling", "all")), models=(a_model(tags=("vision", "all")),), devices=(device,)
    )
    (case,) = plan(suite, environment={"VK_DRIVER_FILES": "lvp_icd.json"})
    assert case == replace(
        make_case("tiled", device="pool", baseline=True, uri="local-task"),
        id=case.id,
        toolchain="3.13.0",
        pin=True,
        tags=("vision", "all", "tiling", "cpu"),
        more_uris=("vulkan",),
        threads=1,
        environment={"VK_DRIVER_FILES": "lvp_icd.json"},
    )


# --- the matrix ---


@pytest.mark.parametrize(
    ("fields", "cases"),
    [
        ({"include": ("big/*@gpu", "small/stock@cpu")}, ["small/stock@cpu", "big/stock@gpu", "big/fast@gpu"]),
        ({"include": ("big/*",), "exclude": ("*@gpu",)}, ["big/stock@cpu", "big/fast@cpu"]),
        *(({"exclude": (pattern,)}, EVERY_CASE[:-1]) for pattern in ("big/*t@gpu", "[b]?g/[!s]*@[fg]pu")),
    ],
)
def test_the_matrix_includes_then_excludes_by_patterns_of_a_shell(fields: dict[str, Any], cases: list[str]) -> None:
    assert names(plan(suite_with(**fields))) == cases


NO_MATCH = "matches no case; patterns are matched with model/variant@device, such as small/stock@cpu"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"include": ("*", "big/*@tpu")}, f"[matrix] include: 'big/*@tpu' {NO_MATCH}"),
        ({"exclude": ("*@gpu", "big/*@tpu")}, f"[matrix] exclude: 'big/*@tpu' {NO_MATCH}"),
        # Patterns match whole names and mind capitals.
        *(({"exclude": (pattern,)}, f"[matrix] exclude: '{pattern}' {NO_MATCH}") for pattern in ("big/fast", "BIG/*")),
        ({"exclude": ("*",)}, "[matrix] exclude leaves no case; remove a pattern"),
        (
            {"exclude": ("big/stock@gpu",)},
            "[matrix] leaves big/fast@gpu without its baseline 'stock'; include big/stock@gpu or exclude big/*@gpu",
        ),
        (
            {"exclude": ("*/fast@gpu",), "expectations": (Expectation(cases="*/fast@gpu", message="oops"),)},
            f"[[expect]] cases: '*/fast@gpu' {NO_MATCH}",
        ),
        (
            {"exclude": ("*/fast@gpu",), "gates": (Gate(name="memory", metric="copies", cases="*/fast@gpu"),)},
            f"[gates.memory] cases: '*/fast@gpu' {NO_MATCH}",
        ),
    ],
)
def test_a_suite_whose_patterns_leave_too_little(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SuiteError) as caught:
        plan(suite_with(**fields))
    assert str(caught.value) == f"suite.toml: {sentence}"


def test_a_case_has_the_first_expectation_that_matches_it_else_that_of_its_model() -> None:
    by_case = (
        Expectation(cases="big/*@gpu", message=None),
        Expectation(cases="small/fast@*", message="shared memory"),
        Expectation(cases="*/fast@gpu", message="no such extension"),
    )
    wrong, refused = Expectation(cases="small/*", message=None), Expectation(cases="big/*", message="no such operator")
    models = (a_model("small", expectation=wrong), a_model("big", expectation=refused))
    cases = plan(replace(suite_with(expectations=by_case), models=models))
    mismatch, memory, operator = (None, True), ("shared memory", False), ("no such operator", False)
    found = [(case.expected_failure, case.expected_mismatch) for case in cases]
    assert found == [mismatch, memory] * 2 + [operator] * 2 + [mismatch] * 2
    assert all(case.known_to_fail for case in cases)
    assert not any(case.known_to_fail for case in plan(suite_with()))


# --- what the user asks for ---


@pytest.mark.parametrize(
    ("patterns", "tags", "left_out"),
    [
        (("big/fast@gpu",), (), EVERY_CASE[:6]),  # the baseline comes along
        (("big/fast@gpu", "small/fast@*"), (), EVERY_CASE[4:6]),
        ((), ("new",), []),
        ((), ("vision", "slow-lane"), EVERY_CASE[:2]),
        (("*@cpu",), ("vision",), [*EVERY_CASE[:4], *EVERY_CASE[6:]]),
    ],
)
def test_a_selection_matches_a_pattern_and_a_tag(
    patterns: tuple[str, ...], tags: tuple[str, ...], left_out: list[str]
) -> None:
    selected = names(plan(suite_with(), patterns=patterns, tags=tags))
    assert selected == [name for name in EVERY_CASE if name not in left_out]


def test_a_selection_of_nothing() -> None:
    with pytest.raises(UsageError) as caught:
        plan(suite_with(), patterns=("*@cpu", "tiny/*"), tags=("slow-lane",))
    assert str(caught.value) == (
        "suite.toml: --filter *@cpu --filter tiny/* --tag slow-lane matches no case; `harness list suite.toml` shows "
        "them all"
    )


def test_the_case_that_is_meant_may_be_left_out_where_a_suite_has_one(write_suite: WriteSuite) -> None:
    with pytest.raises(UsageError, match="give it behind the suite, one of net/stock@cpu, net/tiled@cpu"):
        case_meant(write_suite(), None)
    with pytest.raises(UsageError, match="there is no case 'net/stok@cpu'; did you mean"):
        case_meant(write_suite(), "net/stok@cpu")
    one = write_suite("", '[matrix]\nexclude = ["*/tiled@*"]\n')
    assert (case_meant(one, None), case_meant(one, "net/stock@cpu")) == ("net/stock@cpu", "net/stock@cpu")


def test_each_model_is_in_one_shard_with_all_of_its_devices_and_stays_there() -> None:
    shards = [parse_shard(f" {number}/3 ") for number in (1, 2, 3)]
    models = [f"net{number}" for number in range(40)]
    having = [[m for m in models if shard.has(make_case(model=m, device=d))] for d in "ab" for shard in shards]
    assert having[:3] == having[3:]
    assert sorted(name for found in having[:3] for name in found) == sorted(models)
    assert all(8 <= len(found) <= 20 for found in having)
    assert having[0][:4] == ["net1", "net3", "net5", "net13"], "the same on every machine"
    for text in ("0/8", "9/8", "x/y", "2/8/9", ""):
        with pytest.raises(UsageError, match=f"--shard {text}: is no shard; write its number and how many there are"):
            parse_shard(text)


# --- toolchains ---


def under(*toolchains: str, **others: Any) -> tuple[Case, ...]:
    return across_toolchains([plan(suite_with(), toolchain=toolchain, **others) for toolchain in toolchains])


def test_each_case_is_followed_by_itself_under_the_other_toolchains() -> None:
    assert under("3.12.0") == plan(suite_with(), toolchain="3.12.0"), "one alone changes nothing"
    cases = under("3.11.0", "3.13.0", "3.12.0")
    releases = ("3.11.0", "3.13.0", "3.12.0")
    assert names(cases) == [f"{name}:{release}" for name in EVERY_CASE for release in releases]
    assert {case.id for case in cases} == {case.id for case in plan(suite_with())}
    assert names([case for case in cases if case.baseline]) == [
        f"{model}/stock@{device}:3.11.0" for model in ("small", "big") for device in ("cpu", "gpu")
    ]


def test_a_groups_baseline_is_under_the_first_toolchain_that_finds_its_device() -> None:
    old = plan(suite_with(), toolchain="3.11.0", unavailable={"gpu": "no device"})
    on_cpu = {"small@cpu": "3.11.0", "big@cpu": "3.11.0"}
    for gone, release in (({}, "3.13.0"), ({"gpu": "none"}, "3.11.0")):
        plans = (old, plan(suite_with(), toolchain="3.13.0", unavailable=gone))
        found = {case.group: case.toolchain for case in across_toolchains(plans) if case.baseline}
        assert found == {**on_cpu, "small@gpu": release, "big@gpu": release}


def test_a_peer_is_there_once() -> None:
    plans = [plan(a_suite(), toolchain=release, peers=[ONNXRUNTIME]) for release in ("3.12.0", "3.13.0")]
    assert names(across_toolchains(plans)) == ["net/stock@cpu:3.12.0", "net/stock@cpu:3.13.0", "net/onnxruntime@cpu"]


def test_flags_that_the_compiler_does_not_know() -> None:
    known = frozenset({"a", "b", "iree-load-plugin"})
    assert unknown_flags(("--a", "--c=1", "-b=2", "--d"), known) == ["--c=1", "--d"]
    assert unknown_flags(("--iree-load-plugin=lib.so", "--c"), known) == [], "a compiler plugin brings its own"


# --- One variant or peer on one device: its flags, its identity, its threads, and why it does not run here ---


def test_flags_come_from_the_device_then_flag_sets_then_the_variant_and_a_later_one_wins() -> None:
    device = a_device(compile_flags=("--a=device", "--b=device", "--c=device"), run_flags=("--r=device",))
    sets = (
        FlagSet(name="one", compile=("--b=one", "--c=one", "--d=one"), run=("--r=one",)),
        FlagSet(name="two", compile=("--d=two",), run=("--r=two",)),
    )
    (case,) = plan(a_suite(a_variant("stock", "--c=variant", flag_sets=sets), devices=(device,)))
    assert case.compile_flags == ("--a=device", "--b=one", "--d=two", "--c=variant")
    assert case.run_flags == ("--r=two",)


FOUR, EIGHT = "--task_topology_group_count=4", "--task_topology_group_count=8"


@pytest.mark.parametrize(
    ("fields", "threads", "flags"),
    [
        ({"more_uris": ("local-sync",)}, 1, ()),
        ({"uri": "local-task"}, None, ()),
        ({"uri": "local-task", "pin": True}, 1, ()),
        ({"uri": "vulkan", "threads": 2}, 2, ()),
        ({"uri": "local-task", "threads": 4}, 4, (FOUR,)),
        ({"more_uris": ("local-task",), "threads": 4}, 4, (FOUR,)),
        ({"uri": "local-task", "threads": 4, "run_flags": (EIGHT,)}, 4, (EIGHT,)),
    ],
)
def test_threads_of_peers_and_of_pools(fields: dict[str, Any], threads: int | None, flags: tuple[str, ...]) -> None:
    case, *peers = plan(a_suite(devices=(a_device(**fields),)), peers=[ONNXRUNTIME])
    assert (case.threads, case.run_flags) == (threads, flags)
    assert all(peer.threads == threads for peer in peers)


# --- skips ---


TILING = FlagSet(name="tiling", backends=("llvm-cpu", "vmvx"), toolchains=">=3.8,<4")
PLAIN = FlagSet(name="anything")


@pytest.mark.parametrize(
    ("machine", "skip"),
    [
        ({}, None),
        ({"backend": "vmvx", "toolchain": "3.8.0"}, None),
        ({"backend": "cuda"}, "flag set tiling is for llvm-cpu, vmvx, and device here is cuda"),
        ({"toolchain": "3.7.1"}, "flag set tiling is for IREE >=3.8,<4, and this is 3.7.1"),
        ({"backend": "cuda", "unavailable": {"here": "no CUDA device"}}, "no CUDA device"),
    ],
)
def test_a_case_that_does_not_run_here_says_why_and_keeps_its_identity(
    machine: dict[str, Any], skip: str | None
) -> None:
    fields = dict(machine)
    device = a_device("here", backend=fields.pop("backend", "llvm-cpu"))
    suites = (a_suite(a_variant("tiled", flag_sets=(flags,)), devices=(device,)) for flags in (TILING, PLAIN))
    (case,), (other,) = (plan(suite, **fields) for suite in suites)
    assert (case.skip, case.id) == (skip, other.id)


def test_releases_are_version_specifiers_and_nightly_builds_count() -> None:
    nightly = "3.14.0rc20260901"
    for specifier, release, suited in ((">=3.8,!=3.9.0", "3.9.0", False), ("<3.13", nightly, False), ("", "1", True)):
        assert suits(a_variant(toolchains=specifier), release) is suited
        assert suits(a_variant(flag_sets=(FlagSet(name="tiling", toolchains=specifier),)), release) is suited
    assert suits(a_variant(toolchains=">=3.13"), nightly)


# --- identity ---

SHARE = applied(flag_plugin("share-concat", "--iree-share-concat"))
SHARING = a_variant(plugins=(PluginTable(name="share-concat"),))


MODEL, VARIANT, DEVICE = a_model(), a_variant(), a_device()


def case_id(
    *,
    model: Model = MODEL,
    variant: Variant = VARIANT,
    device: Device = DEVICE,
    model_id: str = "the definition of net",
    toolchain: str = "3.13.0",
    share: Applied = SHARE,
) -> str:
    suite = a_suite(variant, models=(model,), devices=(device,))
    plugins = {variant.name: (share,)} if variant.plugins else {}
    (case,) = plan(suite, model_ids={model.name: model_id}, toolchain=toolchain, plugins=plugins)
    return case.id


def with_flags(*flags: str) -> str:
    return case_id(variant=a_variant("stock", *flags))


def test_the_id_is_a_known_one() -> None:
    # Runs on people's disks are compared by these ids. Whoever makes this fail cuts every stored run off from the next:
    # do it on purpose, raise the version of the stored files, and say so in the release notes.
    device = a_device(uri="local-task", compile_flags=("--iree-hal-target-device=local",), run_flags=("--x=1",))
    variant = a_variant("tiled", "--iree-opt-data-tiling")
    assert case_id(variant=variant, device=device, model_id="0" * 64) == "2abe240479bcadb7"


def test_the_id_does_not_depend_on_names_remarks_toolchain_backend_and_where_or_in_which_order_flags_stand() -> None:
    remarks: dict[str, Any] = {"description": "a", "tags": ("b",)}
    assert {
        case_id(),
        case_id(model=a_model("other"), variant=a_variant("other"), device=a_device("other")),
        case_id(model=a_model(**remarks), variant=a_variant(**remarks), device=a_device(**remarks)),
        case_id(toolchain="3.12.0"),  # which is what one compares
        case_id(device=a_device(backend="vmvx")),  # which the flags choose
    } == {case_id()}
    by_set = a_variant("stock", "--b=2", flag_sets=(FlagSet(name="set", compile=("--a=1",)),))
    assert with_flags("--a=1", "--b=2") == with_flags("--b=2", "--a=1") == case_id(variant=by_set)


def test_the_id_depends_on_all_that_changes_what_is_run() -> None:
    other_version = applied(flag_plugin("share-concat", "--iree-share-concat", version="2"))
    ids = [
        case_id(),
        case_id(model_id="another definition of net"),
        with_flags("--a"),
        case_id(variant=a_variant(run_flags=("--a",))),
        case_id(device=a_device(uri="local-task")),
        case_id(device=a_device(pin=True)),
        case_id(device=a_device(more_uris=("a", "b"))),
        case_id(device=a_device(more_uris=("b", "a"))),
        case_id(device=a_device(vulkan_driver="lavapipe")),
        with_flags("--pass=x", "--pass=y"),
        with_flags("--pass=y", "--pass=x"),
        with_flags("--iree-share-concat"),
        case_id(variant=SHARING),
        case_id(variant=SHARING, share=other_version),
        case_id(variant=SHARING, share=replace(SHARE, options={"deep": True})),
    ]
    assert len(set(ids)) == len(ids)


# --- peers ---

HALIDE = PeerTable(name="halide", label="halide-tutorial", options={"schedule": "tutorial"})


def peer_case(*, peer: PeerTable = ONNXRUNTIME, device: Device = DEVICE, **others: Any) -> Case:
    (case,) = (case for case in plan(a_suite(devices=(device,)), peers=[peer], **others) if case.peer is not None)
    return case


def test_peers_stand_after_the_variants_of_each_group_and_have_nothing_that_is_irees() -> None:
    expectation = Expectation(cases="*/*", message="no")
    models = (a_model("a", expectation=expectation), a_model("b", expectation=expectation))
    suite = a_suite(a_variant("stock", "--iree-opt-level=O3"), a_variant("fast"), models=models)
    cases = plan(suite, peers=[ONNXRUNTIME, HALIDE])
    assert names(cases) == [
        f"{model}/{variant}@cpu" for model in "ab" for variant in ("stock", "fast", "onnxruntime", "halide-tutorial")
    ]
    stock, _, peer, *_ = cases
    assert (peer.peer, peer.toolchain, peer.compile_flags, peer.run_flags) == ("onnxruntime", "", (), ())
    assert (peer.baseline, "peer" in peer.tags) == (False, True)
    assert (stock.known_to_fail, peer.known_to_fail) == (True, False)


def test_a_peers_cases_are_on_one_llvm_cpu_device_and_are_skipped_where_it_or_the_device_is_missing() -> None:
    for fields in ({"uri": "vulkan", "backend": "vulkan-spirv"}, {"backend": "vmvx"}, {"more_uris": ("local-task",)}):
        cases = plan(a_suite(devices=(a_device(**fields),)), peers=[ONNXRUNTIME])
        assert [case.peer for case in cases] == [None]
    peers = [ONNXRUNTIME, HALIDE]
    without_peer = plan(a_suite(), peers=peers, missing_peers={"onnxruntime": "not installed; get it"})
    assert [case.skip for case in without_peer] == [None, "not installed; get it", None]
    without_device = plan(a_suite(), peers=peers, unavailable={"cpu": "no such device"})
    assert [case.skip for case in without_device] == ["no such device"] * 3


def test_a_peers_identity_is_engine_options_threads_and_model_and_not_its_label() -> None:
    first = peer_case()
    assert peer_case(peer=PeerTable(name="onnxruntime", label="ort")).id == first.id
    others = (
        peer_case(peer=PeerTable(name="openvino")),
        peer_case(peer=PeerTable(name="onnxruntime", options={"mode": "eager"})),
        peer_case(device=a_device(threads=2)),
        peer_case(model_ids={"net": "another"}),
    )
    assert first.id not in {case.id for case in others}
