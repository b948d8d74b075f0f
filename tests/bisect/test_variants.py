"""The parts of two variants, and variants with some of them."""

from hypothesis import given
from hypothesis import strategies as st

from harness.bisect.variants import CompileConfig, Use, parts_between, uses_of, with_parts

FLAGS = st.lists(st.sampled_from(["--a", "--b=1", "--b=2", "--c", "--list=x", "--list=y"]), unique=True, max_size=5)
PLUGINS = st.lists(
    st.tuples(
        st.sampled_from(["tuned", "share"]), st.dictionaries(st.sampled_from("ab"), st.integers(0, 2), max_size=2)
    ),
    max_size=3,
)
WAYS = st.builds(
    lambda flags, run, plugins: CompileConfig(flags=tuple(flags), run_flags=tuple(run), plugins=uses_of(plugins)),
    FLAGS,
    FLAGS,
    PLUGINS,
)


@given(WAYS, WAYS)
def test_all_parts_make_the_one_of_the_other_and_none_leave_it(base: CompileConfig, head: CompileConfig) -> None:
    parts = parts_between(base, head)
    assert with_parts(base, head, parts) == head
    none = with_parts(base, head, ())
    assert (sorted(none.flags), sorted(none.run_flags)) == (sorted(base.flags), sorted(base.run_flags))
    assert sorted(map(str, none.plugins)) == sorted(map(str, base.plugins))
    assert len(set(map(str, parts))) == len(parts)


def test_what_is_added_replaced_and_left_out_is_said() -> None:
    base = CompileConfig(
        flags=("--level=O2", "--old"), plugins=(Use(name="tuned", options={"width": 8, "fuse": True}),)
    )
    head = CompileConfig(
        flags=("--level=O3", "--new"),
        run_flags=("--threads=2",),
        plugins=(Use(name="tuned", options={"width": 16}), Use(name="share-concat")),
    )
    parts = parts_between(base, head)
    assert [part.words for part in parts] == [
        "--level=O3",
        "--new",
        "without --old",
        "--threads=2 at run time",
        "tuned: width = 16",
        "without tuned: fuse",
        "plugin share-concat",
    ]
    assert with_parts(base, head, [parts[0]]).flags == ("--old", "--level=O3"), "it replaces the other value"
    assert with_parts(base, head, [parts[1]]).flags == ("--level=O2", "--old", "--new")
    assert with_parts(base, head, parts[4:6]).plugins == (Use(name="tuned", options={"width": 16}),)


def test_an_option_does_nothing_without_its_plugin() -> None:
    head = CompileConfig(plugins=(Use(name="tuned", options={"width": 16}),))
    plugin, option = parts_between(CompileConfig(), head)
    assert with_parts(CompileConfig(), head, [option]) == CompileConfig()
    assert with_parts(CompileConfig(), head, [plugin]).plugins == (Use(name="tuned"),)
    assert with_parts(CompileConfig(), head, [plugin, option]) == head
