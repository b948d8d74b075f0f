"""A TOML file that is wrong by itself gets one sentence that names file, table and key, and says what to write."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.errors import ExitCode, SuiteError
from harness.suite.load import load_suite
from harness.suite.toml_file import read_content
from tests.builders import FLAGS
from tests.suite.conftest import WriteSuite, replaced

QUOTED = '"a".'


class Mistake(NamedTuple):
    """One piece of the small suite replaced by another (appended, where the first is empty), and what loading says."""

    what: str
    old: str
    new: str
    sentence: str


NAMES = "must start with a letter or digit and hold only letters, digits, '.', '_', '+' and '-'"
OP = "must be an operation's name, like linalg.*, host:arith.addf or executables:memref.alloc"
INPUT = "inputs = [{ shape = [4] }]"
STOCK = "[variants.stock]\n"
EXPECT = '[[expect]]\ncases = "*"\n'

# An editor that has the JSON Schema underlines each of these.
WRONG_FORM = [
    Mistake("a misspelt key", 'name = "small"', 'name = "small"\nbudget = 3', "budget is not a known key; known: "
        "baseline, description, devices, expect, flagset_files, floors, gates, groups, ir, matrix, measure, models, "
        "name, peers, storage, variant_files, variants"),
    Mistake("a misspelt key of a table", STOCK, f"{STOCK}flag = []", '[variants.stock] flag is not a known key; did '
        'you mean "flags"?'),
    Mistake("a misspelt key of an input", INPUT, "inputs = [{ shape = [4], sede = 1 }]",
        '[models.net] inputs[0].sede is not a known key; did you mean "seed"?'),
    Mistake("a misspelt key of a list of tables", "", f'{EXPECT}fail = "x"',
        '[[expect]] #1 fail is not a known key; did you mean "fails"?'),
    Mistake("a misspelt key of a table that may be missing", INPUT, f"{INPUT}\ntolerance = {{ relativ = 1 }}",
        '[models.net.tolerance] relativ is not a known key; did you mean "relative"?'),
    Mistake("a misspelt table", "[models.net]", "[model.net]", 'model is not a known key; did you mean "models"? '
        "(and 1 more error)"),
    Mistake("no name", 'name = "small"\n', "", "name is missing; add it"),
    Mistake("a device without URI", 'uri = "local-sync"\n', "", "[devices.cpu] uri is missing; add it"),
    Mistake("an expectation of nothing", "", EXPECT,
        "[[expect]] #1 needs exactly one of fails and mismatch = true, and has neither"),
    Mistake("an expectation of two things", "", f'{EXPECT}fails = "no"\nmismatch = true',
        "[[expect]] #1 needs exactly one of fails and mismatch = true, and has both"),
    Mistake("an expectation of empty words", "", f'{EXPECT}fails = ""', "[[expect]] #1 fails: '' must not be empty"),
    Mistake("a model's expectation in other words", INPUT, f'{INPUT}\nexpect = "fails: no"',
        "[models.net] expect: 'fails: no' must be 'mismatch', or 'fail: ' and a part of the message"),
    Mistake("a model's expectation without words", INPUT, f'{INPUT}\nexpect = "fail: "',
        "[models.net] expect: 'fail: ' must be 'mismatch', or 'fail: ' and a part of the message"),
    Mistake("a number for a string", 'name = "small"', "name = 5", "name: 5 must be a string"),
    Mistake("a string for a number", "", '[measure]\nbudget_s = "60"', "[measure] budget_s: '60' must be a number"),
    Mistake("a fraction for an integer", "", "[measure]\ngenerations = 2.5",
        "[measure] generations: 2.5 must be an integer"),
    Mistake("a truth value for an integer", INPUT, "inputs = [{ shape = [true] }]",
        "[models.net] inputs[0].shape[0]: true must be an integer"),
    Mistake("an integer for a truth value", "", "pin = 1", "[devices.cpu] pin: 1 must be true or false"),
    Mistake("a string for a list", STOCK, f'{STOCK}flags = "--iree-opt-level=O3"',
        "[variants.stock] flags: '--iree-opt-level=O3' must be a list"),
    Mistake("a list for a table", STOCK, "[variants]\nstock = []", "[variants] stock: [] must be a table"),
    Mistake("a number for a list that may be a string", 'uri = "local-sync"', "uri = 3",
        "[devices.cpu] uri: 3 must be a list"),
    Mistake("a long wrong value", 'name = "small"', f"name = [{', '.join(['1234'] * 20)}]",
        "name: [1234, 1234, 1234, 1234, 1234, 1234, 1234, 1234, 1234, 1234,... must be a string"),
    Mistake("two mistakes at once", 'name = "small"\nbaseline = "stock"', "name = 5\nbaseline = 6",
        "name: 5 must be a string (and 1 more error)"),
    Mistake("three mistakes at once", INPUT, 'inputs = [{ shape = ["a", "b", "c"] }]',
        "[models.net] inputs[0].shape[0]: 'a' must be an integer (and 2 more errors)"),
    Mistake("a name with a blank", 'name = "small"', 'name = "a b"', f"name: 'a b' {NAMES}"),
    Mistake("a table's name with a slash", "[models.net]", '[models."nets/a"]', f"[models]: the name 'nets/a' {NAMES}"),
    Mistake("a table's name that is too long", "[variants.tiled]", f"[variants.{'t' * 101}]",
        f"[variants]: the name '{'t' * 59}... must have at most 100 characters"),
    Mistake("a flag without dashes", STOCK, f'{STOCK}flags = ["O3"]',
        "[variants.stock] flags[0]: 'O3' must start with a dash and a letter, like --iree-opt-level=O3"),
    Mistake("an element type of another language", INPUT, 'inputs = [{ shape = [4], dtype = "float32" }]',
        "[models.net] inputs[0].dtype: 'float32' must be one of 'f64', 'f32', 'f16', 'bf16', 'i64', 'i32', 'i16', "
        "'i8', 'i1', 'index'"),
    Mistake("a negative size", INPUT, "inputs = [{ shape = [-1] }]",
        "[models.net] inputs[0].shape[0]: -1 must be at least 0"),
    Mistake("a size beyond all memory", INPUT, f"inputs = [{{ shape = [{2**41}] }}]",
        "[models.net] inputs[0].shape[0]: 2199023255552 is wrong: input should be less than or equal to 1099511627776"),
    Mistake("a budget of nothing", "", "[measure]\nbudget_s = 0", "[measure] budget_s: 0 must be more than 0"),
    Mistake("an include of nothing", "", "[matrix]\ninclude = []", "[matrix] include: [] must have at least 1 entry"),
    Mistake("an empty URI among others", '"local-sync"', '["local-sync", ""]',
        "[devices.cpu] uri: '' must not be empty"),
    Mistake("a floor in percent", "", "[floors]\nlatency = 0.01\ncompile-time = 10",
        "[floors] compile-time: 10 must be less than 1"),
    Mistake("a floor of a count", "", "[floors]\ncopies = 0.01",
        "[floors] copies: is counted, and one more is a change; remove it, or say in a [gates] table how much it may "
        "change"),
    Mistake("a floor of a misspelt metric", "", "[floors]\ncompile_time = 0.1",
        "[floors] compile_time: there is no metric 'compile_time'; did you mean \"compile-time\"?"),
    Mistake("a gate of an op count at no phase", "", '[ir]\nflow = ["flow.*"]\n[gates.ops]\nmetric = "flows/flow.*"',
        "[gates.ops] metric: there is no metric 'flows/flow.*'; known: compile-time, copies, device-peak-memory, "
        "dispatch-size, dispatches, fills, host-peak-memory, instructions, latency, module-size, transient-memory"),
    Mistake("a group of one", "", '[[groups]]\ntitle = "Tiling"\nvariants = ["stock"]',
        "[[groups]] #1 variants: ['stock'] must have at least 2 entries"),
    Mistake("ops at a misspelt phase", "", '[ir]\nflows = ["flow.*"]',
        "[ir]: there is no phase 'flows'; did you mean \"flow\"?"),
    Mistake("an op that is none", "", '[ir]\nflow = ["flow.dispatch, flow.tensor.update"]',
        f"[ir] flow[0]: 'flow.dispatch, flow.tensor.update' {OP}"),
    Mistake("an op on two lines", "", '[ir]\nflow = ["flow.*\\nhal.*"]', f"[ir] flow[0]: 'flow.*\\nhal.*' {OP}"),
]  # fmt: skip

# The same for flags.toml, whose sentences begin with `flags.toml: `.
WRONG_FLAG_SETS = [
    Mistake("a misspelt key of a flag set", "compile =", "compiler =",
        '[flagsets.tiling] compiler is not a known key; did you mean "compile"?'),
    Mistake("no flag set", FLAGS, "[flagsets]", "flagsets: {} must have at least 1 entry"),
    Mistake("a suite in place of flag sets", "[flagsets.tiling]", "[variants.tiling]",
        "variants is not a known key; known: flagsets (and 1 more error)"),
]  # fmt: skip


def refusal(path: Path) -> str:
    with pytest.raises(SuiteError) as caught:
        load_suite(path)
    assert caught.value.exit_code == ExitCode.USAGE
    return str(caught.value)


def test_only_regular_files_of_bounded_size_are_read(tmp_path: Path) -> None:
    pipe, large = tmp_path / "pipe.toml", tmp_path / "large.toml"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(SuiteError, match=r": is no regular file; name a TOML file$"):
            read_content(path)
    with large.open("wb") as file:
        file.truncate(17 << 20)
    with pytest.raises(SuiteError, match=r"large\.toml: has more than 16 MiB; name a TOML file$"):
        read_content(large)


@pytest.mark.parametrize("mistake", WRONG_FORM, ids=lambda mistake: mistake.what)
def test_a_suite_of_the_wrong_form(mistake: Mistake, write_suite: WriteSuite) -> None:
    assert refusal(write_suite(mistake.old, mistake.new)) == f"suite.toml: {mistake.sentence}"


@pytest.mark.parametrize("mistake", WRONG_FLAG_SETS, ids=lambda mistake: mistake.what)
def test_flag_sets_of_the_wrong_form(mistake: Mistake, write_suite: WriteSuite) -> None:
    path = write_suite(flags=replaced(FLAGS, mistake.old, mistake.new))
    assert refusal(path) == f"flags.toml: {mistake.sentence}"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("", STOCK, "[variants.stock] is defined twice, the second time in line 19; rename or remove one of them"),
        ('"small"', '"small"\n\nname = "b"', "name is given twice, the second time in line 3; remove one of them"),
        (
            STOCK,
            f'{STOCK}flags = []\nflags = [\n    "--a=1",\n]\n',
            "[variants.stock] flags is given twice, the second time in line 12; remove one of them",
        ),
        (
            STOCK,
            f"[name]\n{STOCK}",
            "[name] is defined twice, the second time in line 10; rename or remove one of them",
        ),
        ("", "pin = true\npin = 1", "[devices.cpu] pin is given twice, the second time in line 20; remove one of them"),
    ],
    ids=["a variant", "a key", "a key of a variant", "a key that is a table too", "the last line"],
)
def test_what_stands_twice(old: str, new: str, sentence: str, write_suite: WriteSuite) -> None:
    assert refusal(write_suite(old, new)) == f"suite.toml: {sentence}"


def test_text_that_is_not_toml(write_suite: WriteSuite) -> None:
    sentence = refusal(write_suite('name = "small"', "name = small"))
    assert sentence.startswith("suite.toml: is not valid TOML: ")
    assert "line 1" in sentence


def test_a_file_that_cannot_be_read(write_suite: WriteSuite) -> None:
    path = write_suite()
    path.write_bytes(b'name = "caf\xe9"')
    assert refusal(path) == "suite.toml: is not UTF-8 text (byte 11); save it as UTF-8"
    assert refusal(Path("none.toml")) == "none.toml: there is no such file; check the path"
    Path("suites").mkdir()
    assert refusal(Path("suites")) == "suites: cannot be read (Is a directory); check the path and its permissions"


def test_a_byte_order_mark_does_no_harm(write_suite: WriteSuite) -> None:
    path = write_suite()
    expected = load_suite(path).suite
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load_suite(path).suite == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"x = {'[' * 5000}{']' * 5000}", "is nested too deeply"),
        (f"x = {'{ a = ' * 5000}1{' }' * 5000}", "is nested too deeply"),
        (f"x = {'9' * 5000}", "has a number of thousands of digits"),
        (f"{'a.' * 5000}b = 1", "has a key of more than 64 parts"),
        (f"[{'a . ' * 5000}b]", "has a key of more than 64 parts"),
        (f"x = {{ {QUOTED * 5000}b = 1 }}", "has a key of more than 64 parts"),
    ],
    ids=["lists", "tables", "digits", "key", "header", "quoted key"],
)
def test_what_only_an_attacker_writes_is_refused_at_once(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "suite.toml").write_text(text)
    with pytest.raises(SuiteError, match=words):
        read_content(tmp_path / "suite.toml")


def test_many_numbers_on_a_line_are_no_key(tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text(f"x = [{'1.5, ' * 500}]")
    assert len(read_content(tmp_path / "suite.toml")[0]["x"]) == 500
