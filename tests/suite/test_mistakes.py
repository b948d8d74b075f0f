"""A suite that is wrong gets one sentence that names file, table and key; editors underline what is of a wrong form."""

from pathlib import Path
from typing import NamedTuple

import pytest
import tomli
from jsonschema import Draft202012Validator

from harness.suite.load import load_suite
from harness.suite.schema import json_schema
from tests.builders import FLAGS, SUITE
from tests.suite.conftest import WriteSuite, refusal, replaced


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
GROUP = '[[groups]]\ntitle = "A"\nvariants = '
BUILDER = ('mlir = "net.mlir"\nfunction = "main"\n' + INPUT, 'builder = "any"\n')
FOR_FILES = "for mlir and onnx files; a builder gives its own, so remove"
COUNT = '[ir]\nflow = ["flow.tensor.update"]\n'

# An editor that has the JSON Schema underlines each of these.
WRONG_FORM = [
    Mistake("a misspelt key", 'name = "small"', 'name = "small"\nbudget = 3', "budget is not a known key; known: "
        "baseline, description, devices, expect, flagset_files, floors, gates, groups, ir, matrix, measure, models, "
        "name, peers, storage, variant_files, variants"),
    Mistake("a misspelt key of a list of tables", "", f'{EXPECT}fail = "x"',
        '[[expect]] #1 fail is not a known key; did you mean "fails"?'),
    Mistake("a misspelt key of a table that may be missing", INPUT, f"{INPUT}\ntolerance = {{ relativ = 1 }}",
        '[models.net.tolerance] relativ is not a known key; did you mean "relative"?'),
    Mistake("a misspelt table", "[models.net]", "[model.net]", 'model is not a known key; did you mean "models"? '
        "(and 1 more error)"),
    Mistake("a device without URI", 'uri = "local-sync"\n', "", "[devices.cpu] uri is missing; add it"),
    Mistake("an expectation of nothing", "", EXPECT,
        "[[expect]] #1 needs exactly one of fails and mismatch = true, and has neither"),
    Mistake("a model's expectation without words", INPUT, f'{INPUT}\nexpect = "fail: "',
        "[models.net] expect: 'fail: ' must be 'mismatch', or 'fail: ' and a part of the message"),
    Mistake("a number for a string", 'name = "small"', "name = 5", "name: 5 must be a string"),
    Mistake("a string for a number", "", '[measure]\nbudget_s = "60"', "[measure] budget_s: '60' must be a number"),
    Mistake("a long wrong value", 'name = "small"', f"name = [{', '.join(['1234'] * 20)}]",
        "name: [1234, 1234, 1234, 1234, 1234, 1234, 1234, 1234, 1234, 1234,... must be a string"),
    Mistake("three mistakes at once", INPUT, 'inputs = [{ shape = ["a", "b", "c"] }]',
        "[models.net] inputs[0].shape[0]: 'a' must be an integer (and 2 more errors)"),
    Mistake("a table's name that is too long", "[variants.tiled]", f"[variants.{'t' * 101}]",
        f"[variants]: the name '{'t' * 59}... must have at most 100 characters"),
    Mistake("a flag without dashes", STOCK, f'{STOCK}flags = ["O3"]',
        "[variants.stock] flags[0]: 'O3' must start with a dash and a letter, like --iree-opt-level=O3"),
    Mistake("an element type of another language", INPUT, 'inputs = [{ shape = [4], dtype = "float32" }]',
        "[models.net] inputs[0].dtype: 'float32' must be one of 'f64', 'f32', 'f16', 'bf16', 'i64', 'i32', 'i16', "
        "'i8', 'i1', 'index'"),
    Mistake("a budget of nothing", "", "[measure]\nbudget_s = 0", "[measure] budget_s: 0 must be more than 0"),
    Mistake("an empty URI among others", '"local-sync"', '["local-sync", ""]',
        "[devices.cpu] uri: '' must not be empty"),
    Mistake("a floor in percent", "", "[floors]\nlatency = 10", "[floors] latency: 10 must be less than 1"),
    Mistake("a floor of a count", "", "[floors]\ncopies = 0.01",
        "[floors] copies: is counted, and one more is a change; remove it, or say in a [gates] table how much it may "
        "change"),
    Mistake("ops at a misspelt phase", "", '[ir]\nflows = ["flow.*"]',
        "[ir]: there is no phase 'flows'; did you mean \"flow\"?"),
    Mistake("an op that is none", "", '[ir]\nflow = ["flow.dispatch, flow.tensor.update"]',
        f"[ir] flow[0]: 'flow.dispatch, flow.tensor.update' {OP}"),
]  # fmt: skip

# Suites that are wrong by what they refer to or contradict, which the JSON Schema cannot know.
WRONG_MEANING = [
    Mistake("a baseline that is no variant", '"stock"', '"stok"',
        "baseline: there is no variant 'stok'; did you mean \"stock\"?"),
    Mistake("a flag-set file that is not there", '"flags.toml"', '"flag.toml"',
        "flagset_files: there is no file flag.toml beside the suite; check the path"),
    Mistake("a flag set without flag-set files", 'flagset_files = ["flags.toml"]\n', "",
        "[variants.tiled] flagsets: there is no flag set 'tiling'; no flagset_files are given"),
    Mistake("an input without shape", INPUT, "inputs = [{ shape = [4] }, { seed = 1 }]",
        "[models.net] inputs[1] shape is missing; add it, values from an npy file, or the value of an argument that is "
        "no tensor"),
    Mistake("a flag-set file twice", '["flags.toml"]', '["flags.toml", "flags.toml"]',
        "flagset_files: 'flags.toml' is there twice; remove one of them"),
    Mistake("releases that are no version specifier", STOCK, f'{STOCK}toolchains = "3.x"\n',
        "[variants.stock] toolchains: '3.x' is not a version specifier; write it like '>=3.8,<4'"),
    Mistake("a Vulkan driver without Vulkan", "", 'vulkan_driver = "lavapipe"',
        "[devices.cpu] vulkan_driver is for the URI vulkan, and uri is 'local-sync'; remove it"),
    Mistake("threads on the thread that calls", "", "threads = 2",
        "[devices.cpu] threads: local-sync computes on one thread, so use local-task, or remove threads"),
    Mistake("threads on one core", 'uri = "local-sync"', 'uri = "local-task"\npin = true\nthreads = 2',
        "[devices.cpu] has pin, for one core, and threads = 2; remove one of them"),
    Mistake("a group of an unknown variant", "", f'{GROUP}["stock", "tiled"]\n{GROUP}["stock", "tile"]',
        "[[groups]] #2 variants: there is no variant 'tile'; did you mean \"tiled\"?"),
    Mistake("ops at a place that is none", "", '[ir]\nflow = ["dispatch:arith.addf"]',
        "[ir]: there is no place 'dispatch', as in 'dispatch:arith.addf'; write host:... or executables:..."),
    Mistake("a gate of an op that nobody counts", "", f'{COUNT}[gates.ops]\nmetric = "input/linalg.fill"',
        "[gates.ops] metric: 'input/linalg.fill' is not counted; add 'linalg.fill' to input in [ir]"),
    Mistake("a peer like a variant", 'name = "small"', 'name = "small"\npeers = ["stock"]',
        "peers: 'stock' is the name of a variant; give the peer another label"),
    Mistake("a model of no kind", 'mlir = "net.mlir"\n', "",
        "[models.net] needs exactly one of builder, mlir and onnx, and has none"),
    Mistake("a model file that is not there", '"net.mlir"', '"nets/net.mlir"',
        "[models.net] mlir: there is no file nets/net.mlir beside the suite; check the path"),
    Mistake("a model file with a name that no system takes", '"net.mlir"', f'"{"n" * 5000}"',
        f"[models.net] mlir: '{'n' * 59}... cannot be looked up (File name too long); check the path"),
    Mistake("an mlir file without inputs", f"{INPUT}\n", "",
        "[models.net] inputs are missing; an mlir file needs its entry function and inputs"),
    Mistake("parameters of a builder for a file", INPUT, f"{INPUT}\nparams = {{ height = 4 }}",
        "[models.net] params are for builders; remove them or name a builder"),
    Mistake("inputs for a builder", BUILDER[0], BUILDER[1] + INPUT, f"[models.net] inputs are {FOR_FILES} them"),
    Mistake("static shapes without inputs", BUILDER[0], 'onnx = "net.onnx"\nstatic = true',
        "[models.net] static is for onnx files whose inputs are given; remove it, or give inputs"),
    Mistake("a number of a type that IREE has in tensors only", INPUT, 'inputs = [{ dtype = "bf16", value = 2 }]',
        "[models.net] inputs[0] is a number of bf16, which IREE takes in tensors only"),
    Mistake("a tensor of index", INPUT, 'inputs = [{ dtype = "index", shape = [2] }]',
        "[models.net] inputs[0] dtype: index is for an argument that is no tensor; take i64"),
    Mistake("an input of two kinds", INPUT, "inputs = [{ shape = [4], seed = 1, value = 2 }]",
        "[models.net] inputs[0] has seed and value; keep one of them"),
    Mistake("an input file that gives no bytes", INPUT, 'inputs = [{ npy = "/proc/self/mem" }]',
        "[models.net] inputs[0] npy: /proc/self/mem cannot be read (Input/output error); check the path and its "
        "permissions"),
]  # fmt: skip

# The same for flags.toml, whose sentences begin with `flags.toml: `.
WRONG_FLAG_SETS = [
    Mistake("a misspelt key of a flag set", "compile =", "compiler =",
        '[flagsets.tiling] compiler is not a known key; did you mean "compile"?'),
    Mistake("no flag set", FLAGS, "[flagsets]", "flagsets: {} must have at least 1 entry"),
]  # fmt: skip

SCHEMA = {kind: Draft202012Validator(json_schema(kind)) for kind in ("suite", "flagset")}


@pytest.mark.parametrize("mistake", [*WRONG_FORM, *WRONG_MEANING], ids=lambda mistake: mistake.what)
def test_a_wrong_suite(mistake: Mistake, write_suite: WriteSuite) -> None:
    assert refusal(write_suite(mistake.old, mistake.new)) == f"suite.toml: {mistake.sentence}"
    text = replaced(SUITE, mistake.old, mistake.new)
    assert SCHEMA["suite"].is_valid(tomli.loads(text)) is (mistake in WRONG_MEANING)


@pytest.mark.parametrize("mistake", WRONG_FLAG_SETS, ids=lambda mistake: mistake.what)
def test_wrong_flag_sets(mistake: Mistake, write_suite: WriteSuite) -> None:
    text = replaced(FLAGS, mistake.old, mistake.new)
    assert refusal(write_suite(flags=text)) == f"flags.toml: {mistake.sentence}"
    assert not SCHEMA["flagset"].is_valid(tomli.loads(text))


MORE = '[variants.fast]\nflagsets = ["tiling"]\nplugins = ["channels-last"]\n'


@pytest.mark.parametrize(
    ("key", "text", "sentence"),
    [
        ("flagset_files", FLAGS, "[flagsets.tiling] is defined in flags.toml too; rename one of them"),
        ("variant_files", "[variants.stock]", "[variants.stock] is defined in suite.toml too; rename one of them"),
        (
            "variant_files",
            MORE.replace("tiling", "tilings"),
            "[variants.fast] flagsets: there is no flag set 'tilings'; did you mean \"tiling\"?",
        ),
        ("variant_files", "[devices.cpu]", "devices is not a known key; known: variants (and 1 more error)"),
    ],
)
def test_files_that_a_suite_takes_in_are_named(key: str, text: str, sentence: str, write_suite: WriteSuite) -> None:
    Path("more.toml").write_text(text)
    given = '"flags.toml", "more.toml"]' if key == "flagset_files" else f'"flags.toml"]\n{key} = ["more.toml"]'
    assert refusal(write_suite('"flags.toml"]', given)) == f"more.toml: {sentence}"


def test_a_file_that_cannot_be_read(write_suite: WriteSuite, tmp_path: Path) -> None:
    path = write_suite('name = "small"', "name = small")
    assert refusal(path).startswith("suite.toml: is not valid TOML: ")
    path.write_bytes(b'name = "caf\xe9"')
    assert refusal(path) == "suite.toml: is not UTF-8 text (byte 11); save it as UTF-8"
    assert refusal(Path("none.toml")) == "none.toml: there is no such file; check the path"
    assert refusal(tmp_path).endswith(": cannot be read (Is a directory); check the path and its permissions")


def test_a_byte_order_mark_does_no_harm(write_suite: WriteSuite) -> None:
    path = write_suite()
    expected = load_suite(path).suite
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load_suite(path).suite == expected
