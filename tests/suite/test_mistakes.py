"""A suite that is wrong gets one sentence that names file, table and key; editors underline what is of a wrong form."""

from pathlib import Path

import pytest
import tomli
from jsonschema import Draft202012Validator

from harness.suite.load import load_suite
from harness.suite.schema import json_schema
from tests.builders import FLAGS, SUITE
from tests.suite.conftest import WriteSuite, refusal, replaced

# One piece of the small suite replaced by another (appended, where the first is empty), and what loading says.
Mistake = tuple[str, str, str]

INPUT = "inputs = [{ shape = [4] }]"
STOCK = "[variants.stock]\n"
EXPECT = '[[expect]]\ncases = "*"\n'
GROUP = '[[groups]]\ntitle = "A"\nvariants = '
BUILDER = ('mlir = "net.mlir"\nfunction = "main"\n' + INPUT, 'builder = "any"\n')
FOR_FILES = "for mlir and onnx files; a builder gives its own, so remove"
COUNT = '[ir]\nflow = ["flow.tensor.update"]\n'
OP = "must be an operation's name, like linalg.*, host:arith.addf or executables:memref.alloc"

# An editor that has the JSON Schema underlines each of these.
WRONG_FORM: list[Mistake] = [
    ('name = "small"', 'name = "small"\nquota = 3',
        "quota is not a known key; docs/suite-format.md lists the keys"),
    ("", f'{EXPECT}fail = "x"', '[[expect]] #1 fail is not a known key; did you mean "fails"?'),
    ("[models.net]", "[model.net]", 'model is not a known key; did you mean "models"?'),
    ('uri = "local-sync"\n', "", "[devices.cpu] uri is missing; add it"),
    ("", EXPECT, "[[expect]] #1 needs exactly one of fails and mismatch = true, and has neither"),
    (INPUT, f'{INPUT}\nexpect = "fail: "',
        "[models.net] expect: 'fail: ' must be 'mismatch', 'fail', or 'fail: ' and a part of the message"),
    ('name = "small"', f"name = [{', '.join(['1234'] * 20)}]",
        "name: [1234, 1234, 1234, 1234, 1234, 1234, 1234, 1234, 1234, 1234,... must be a string"),
    (INPUT, 'inputs = [{ shape = ["a", "b", "c"] }]',
        "[models.net] inputs[0].shape[0]: 'a' must be an integer (and 2 more errors)"),
    ("[variants.tiled]", f"[variants.{'t' * 101}]",
        f"variants: the name '{'t' * 59}... must have at most 100 characters"),
    (STOCK, f'{STOCK}flags = ["O3"]',
        "[variants.stock] flags[0]: 'O3' must start with a dash and a letter, like --iree-opt-level=O3"),
    (INPUT, 'inputs = [{ shape = [4], dtype = "float32" }]',
        "[models.net] inputs[0].dtype: 'float32' must be one of 'f64', 'f32', 'f16', 'bf16', 'i64', 'i32', 'i16', "
        "'i8', 'i1', 'index'"),
    ("", "[measure]\nbudget_s = 0", "[measure] budget_s: 0 must be more than 0"),
    ('"local-sync"', '["local-sync", ""]', "[devices.cpu] uri: '' must not be empty"),
    ("", "[floors]\ncopies = 0.01",
        "[floors] copies: is counted, and one more is a change; remove it, or say in a [gates] table how much it may "
        "change"),
    ("", '[ir]\nflow = ["flow.dispatch, flow.tensor.update"]',
        f"[ir] flow[0]: 'flow.dispatch, flow.tensor.update' {OP}"),
]  # fmt: skip

# Suites that are wrong by what they refer to or contradict, which the JSON Schema cannot know.
WRONG_MEANING: list[Mistake] = [
    ('"stock"', '"stok"', "baseline: there is no variant 'stok'; did you mean \"stock\"?"),
    (INPUT, f'{INPUT}\nreference = "expected"',
        "[models.net] reference = \"expected\" is for expected files; name them, or leave it out"),
    ("", '[gates.g]\nmetric = "copies"\nat_most = 3\nrelative = 0.1',
        "[gates.g] at_most limits a value, and relative a change; make it two gates"),
    ('"flags.toml"', '"flag.toml"',
        "flagset_files: there is no file 'flag.toml' beside the suite; check the path"),
    ('flagset_files = ["flags.toml"]\n', "",
        "[variants.tiled] flagsets: there is no flag set 'tiling'; no flagset_files are given"),
    (INPUT, "inputs = [{ shape = [4] }, { seed = 1 }]",
        "[models.net] inputs[1] shape is missing; add it, values from an npy file, or the value of an argument that is "
        "no tensor"),
    ('["flags.toml"]', '["flags.toml", "flags.toml"]',
        "flagset_files: 'flags.toml' is there twice; remove one of them"),
    (STOCK, f'{STOCK}toolchains = "3.x"\n',
        "[variants.stock] toolchains: '3.x' is not a version specifier; write it like '>=3.8,<4'"),
    ("", 'vulkan_driver = "lavapipe"',
        "[devices.cpu] vulkan_driver is for the URI vulkan, and uri is 'local-sync'; remove it"),
    ("", "threads = 2",
        "[devices.cpu] threads: local-sync computes on one thread, so use local-task, or remove threads"),
    ('uri = "local-sync"', 'uri = "local-task"\npin = true\nthreads = 2',
        "[devices.cpu] has pin, for one core, and threads = 2; remove one of them"),
    ("", f'{GROUP}["stock", "tiled"]\n{GROUP}["stock", "tile"]',
        "[[groups]] #2 variants: there is no variant 'tile'; did you mean \"tiled\"?"),
    ("", '[ir]\nflow = ["dispatch:arith.addf"]',
        "[ir]: there is no place 'dispatch', as in 'dispatch:arith.addf'; write host:... or executables:..."),
    ("", f'{COUNT}[gates.ops]\nmetric = "input/linalg.fill"',
        "[gates.ops] metric: 'input/linalg.fill' is not counted; add 'linalg.fill' to input in [ir]"),
    ('name = "small"', 'name = "small"\npeers = ["stock"]',
        "peers: 'stock' is the name of a variant; give the peer another label"),
    ('mlir = "net.mlir"\n', "", "[models.net] needs exactly one of builder, mlir and onnx, and has none"),
    ('"net.mlir"', f'"{"n" * 5000}"',
        f"[models.net] mlir: '{'n' * 59}... cannot be read (File name too long); check the path and its permissions"),
    (f"{INPUT}\n", "", "[models.net] inputs are missing; an mlir file needs its entry function and inputs"),
    (INPUT, f"{INPUT}\nparams = {{ height = 4 }}",
        "[models.net] params are for builders; remove them or name a builder"),
    (BUILDER[0], BUILDER[1] + INPUT, f"[models.net] inputs are {FOR_FILES} them"),
    (BUILDER[0], 'onnx = "net.onnx"\nstatic = true',
        "[models.net] static is for onnx files whose inputs are given; remove it, or give inputs"),
    (INPUT, 'inputs = [{ dtype = "bf16", value = 2 }]',
        "[models.net] inputs[0] is a number of bf16, which IREE takes in tensors only"),
    (INPUT, 'inputs = [{ dtype = "index", shape = [2] }]',
        "[models.net] inputs[0] dtype: index is for an argument that is no tensor; take i64"),
    (INPUT, "inputs = [{ shape = [4], seed = 1, value = 2 }]",
        "[models.net] inputs[0] has seed and value; keep one of them"),
    (INPUT, 'inputs = [{ npy = "/proc/self/mem" }]',
        "[models.net] inputs[0] npy: '/proc/self/mem' cannot be read (Input/output error); check the path and its "
        "permissions"),
]  # fmt: skip

SCHEMA = Draft202012Validator(json_schema("suite"))


@pytest.mark.parametrize(("old", "new", "sentence"), [*WRONG_FORM, *WRONG_MEANING])
def test_a_wrong_suite(old: str, new: str, sentence: str, write_suite: WriteSuite) -> None:
    assert refusal(write_suite(old, new)) == f"suite.toml: {sentence}"
    assert SCHEMA.is_valid(tomli.loads(replaced(SUITE, old, new))) is ((old, new, sentence) in WRONG_MEANING)


MORE = '[variants.fast]\nflagsets = ["tiling"]\nplugins = ["channels-last"]\n'


@pytest.mark.parametrize(
    ("key", "text", "sentence"),
    [
        ("flagset_files", FLAGS, "[flagsets.tiling] is defined in flags.toml too; rename one of them"),
        ("flagset_files", "[flagsets]", "flagsets: {} must have at least 1 entry"),
        ("variant_files", "[variants.stock]", "[variants.stock] is defined in suite.toml too; rename one of them"),
        (
            "variant_files",
            MORE.replace("tiling", "tilings"),
            "[variants.fast] flagsets: there is no flag set 'tilings'; did you mean \"tiling\"?",
        ),
        ("variant_files", "name = small", "is not valid TOML in UTF-8: Invalid value (at line 1, column 8)"),
    ],
)
def test_files_that_a_suite_takes_in_are_named(key: str, text: str, sentence: str, write_suite: WriteSuite) -> None:
    Path("more.toml").write_text(text)
    given = '"flags.toml", "more.toml"]' if key == "flagset_files" else f'"flags.toml"]\n{key} = ["more.toml"]'
    assert refusal(write_suite('"flags.toml"]', given)) == f"more.toml: {sentence}"


@pytest.mark.parametrize(
    ("taken", "sentence"),
    [
        ('models = ["x*"]', "models: 'x*' matches none; correct it"),
        ('models = ["net"]', ": 'net' is of suite.toml too; choose other models, or another prefix"),
    ],
)
def test_models_of_another_suite(taken: str, sentence: str, write_suite: WriteSuite) -> None:
    Path("more.toml").write_text(SUITE)
    path = write_suite("", f'\n[model_files]\n"more.toml" = {{ {taken} }}\n')
    where = "suite.toml: [model_files.'more.toml']"
    assert refusal(path) == f"{where}{'' if sentence.startswith(':') else ' '}{sentence}"


def test_a_file_that_cannot_be_read(write_suite: WriteSuite, tmp_path: Path) -> None:
    path = write_suite()
    expected = load_suite(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load_suite(path) == expected, "a byte order mark does no harm"
    path.write_bytes(b'name = "caf\xe9"')
    assert refusal(path).startswith("suite.toml: is not valid TOML in UTF-8: 'utf-8' codec can't decode byte 0xe9")
    assert refusal(Path("none.toml")) == "none.toml: there is no such file; check the path"
    assert refusal(tmp_path).endswith(": cannot be read (Is a directory); check the path and its permissions")
