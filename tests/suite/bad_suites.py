"""What users get wrong in a suite or in a flag-set file, and the sentence that each of them gets.

A row takes the small suite of conftest.py, replaces one piece of its text by another (or appends, where the first is
empty), and says what loading then says after `suite.toml: `. Rows of FORM are wrong by themselves, so an editor that
has the JSON Schema underlines them; rows of MEANING are wrong by what they refer to or contradict.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One mistake."""

    what: str
    old: str
    new: str
    sentence: str


NAMES = "must start with a letter or digit and hold only letters, digits, '.', '_', '+' and '-'"
OP = "must be an operation's name, like linalg.*, host:arith.addf or executables:memref.alloc"
INPUT = "inputs = [{ shape = [4, 8] }]"
STOCK = "[variants.stock]\n"

FORM = [
    Row("a misspelt key", 'name = "small"', 'name = "small"\nbudget = 3', "budget is not a known key; known: "
        "baseline, description, devices, expect, flagset_files, floors, gates, groups, ir, matrix, measure, models, "
        "name, peers, storage, variants"),
    Row("a misspelt key of a table", STOCK, f"{STOCK}flag = []", '[variants.stock] flag is not a known key; did you '
        'mean "flags"?'),
    Row("a misspelt key of an input", INPUT, "inputs = [{ shape = [4], sede = 1 }]",
        '[models.net] inputs[0].sede is not a known key; did you mean "seed"?'),
    Row("a misspelt key of a list of tables", "", '[[expect]]\ncases = "*"\nfail = "x"',
        '[[expect]] #1 fail is not a known key; did you mean "fails"?'),
    Row("a misspelt table", "[models.net]", "[model.net]", 'model is not a known key; did you mean "models"? '
        "(and 1 more error)"),
    Row("a key in the wrong table", "", "budget_s = 3", "[devices.cpu] budget_s is not a known key; known: backend, "
        "compile_flags, description, pin, run_flags, tags, threads, uri, vulkan_driver"),
    Row("no name", 'name = "small"\n', "", "name is missing; add it"),
    Row("no baseline", 'baseline = "stock"\n', "", "baseline is missing; add it"),
    Row("no devices", '[devices.cpu]\nuri = "local-sync"\nbackend = "llvm-cpu"\n', "", "devices is missing; add it"),
    Row("a device without URI", 'uri = "local-sync"\n', "", "[devices.cpu] uri is missing; add it"),
    Row("an expectation of nothing", "", '[[expect]]\ncases = "*"',
        "[[expect]] #1 needs exactly one of fails and mismatch = true, and has neither"),
    Row("an expectation of two things", "", '[[expect]]\ncases = "*"\nfails = "no"\nmismatch = true',
        "[[expect]] #1 needs exactly one of fails and mismatch = true, and has both"),
    Row("an expectation of empty words", "", '[[expect]]\ncases = "*"\nfails = ""',
        "[[expect]] #1 fails: '' must not be empty"),
    Row("a model's expectation in other words", INPUT, f'{INPUT}\nexpect = "fails: no"',
        "[models.net] expect: 'fails: no' must be 'mismatch', or 'fail: ' and a part of the message"),
    Row("a model's expectation without words", INPUT, f'{INPUT}\nexpect = "fail: "',
        "[models.net] expect: 'fail: ' must be 'mismatch', or 'fail: ' and a part of the message"),
    Row("a number where a string belongs", 'name = "small"', "name = 5", "name: 5 must be a string"),
    Row("a string where a number belongs", "", '[measure]\nbudget_s = "60"',
        "[measure] budget_s: '60' must be a number"),
    Row("a fraction where an integer belongs", "", "[measure]\ngenerations = 2.5",
        "[measure] generations: 2.5 must be an integer"),
    Row("a truth value where an integer belongs", INPUT, "inputs = [{ shape = [true] }]",
        "[models.net] inputs[0].shape[0]: true must be an integer"),
    Row("an integer where a truth value belongs", "", "pin = 1", "[devices.cpu] pin: 1 must be true or false"),
    Row("a string where a list belongs", STOCK, f'{STOCK}flags = "--iree-opt-level=O3"',
        "[variants.stock] flags: '--iree-opt-level=O3' must be a list"),
    Row("a list where a table belongs", "[variants.stock]", "[variants]\nstock = []",
        "[variants] stock: [] must be a table"),
    Row("a table where a list belongs", INPUT, "inputs = { shape = [4] }",
        "[models.net] inputs: {'shape': [4]} must be a list"),
    Row("a long wrong value", 'name = "small"', f"name = [{', '.join(['1234'] * 20)}]",
        "name: [1234, 1234, 1234, 1234, 1234, 1234, 1234, 1234, 1234, 1234,... must be a string"),
    Row("two mistakes at once", 'name = "small"\nbaseline = "stock"', "name = 5\nbaseline = 6",
        "name: 5 must be a string (and 1 more error)"),
    Row("three mistakes at once", INPUT, 'inputs = [{ shape = ["a", "b", "c"] }]',
        "[models.net] inputs[0].shape[0]: 'a' must be an integer (and 2 more errors)"),
    Row("a name with a blank", 'name = "small"', 'name = "a b"', f"name: 'a b' {NAMES}"),
    Row("a table's name with a slash", "[models.net]", '[models."nets/a"]', f"[models]: the name 'nets/a' {NAMES}"),
    Row("a table's name that is too long", "[variants.tiled]", f"[variants.{'t' * 101}]",
        f"[variants]: the name '{'t' * 59}... must have at most 100 characters"),
    Row("a name that is too long", 'name = "small"', f'name = "{"x" * 101}"',
        f"name: '{'x' * 59}... must have at most 100 characters"),
    Row("a flag without dashes", STOCK, f'{STOCK}flags = ["O3"]',
        "[variants.stock] flags[0]: 'O3' must start with a dash and a letter, like --iree-opt-level=O3"),
    Row("an element type of another language", INPUT, 'inputs = [{ shape = [4], dtype = "float32" }]',
        "[models.net] inputs[0].dtype: 'float32' must be one of 'f64', 'f32', 'f16', 'bf16', 'i64', 'i32', 'i16', "
        "'i8', 'i1'"),
    Row("a negative size", INPUT, "inputs = [{ shape = [-1, 8] }]",
        "[models.net] inputs[0].shape[0]: -1 must be at least 0"),
    Row("a budget of nothing", "", "[measure]\nbudget_s = 0", "[measure] budget_s: 0 must be more than 0"),
    Row("no generation", "", "[measure]\ngenerations = 0", "[measure] generations: 0 must be at least 1"),
    Row("a negative tolerance", STOCK, f"[models.net.tolerance]\nrelative = -0.5\n{STOCK}",
        "[models.net.tolerance] relative: -0.5 must be at least 0"),
    Row("no URI in a list", 'uri = "local-sync"', "uri = []", "[devices.cpu] uri: [] must have at least 1 entry"),
    Row("a number for a URI", 'uri = "local-sync"', "uri = 3", "[devices.cpu] uri: 3 must be a list"),
    Row("a number among URIs", 'uri = "local-sync"', 'uri = ["a", 3]', "[devices.cpu] uri[1]: 3 must be a string"),
    Row("an empty URI among others", '"local-sync"', '["local-sync", ""]', "[devices.cpu] uri: '' must not be empty"),
    Row("an unknown Vulkan driver", "", 'vulkan_driver = "mesa"',
        "[devices.cpu] vulkan_driver: 'mesa' must be one of 'lavapipe', 'swiftshader'"),
    Row("no threads", "", "threads = 0", "[devices.cpu] threads: 0 must be at least 1"),
    Row("an empty URI", '"local-sync"', '""', "[devices.cpu] uri: '' must not be empty"),
    Row("an include of nothing", "", "[matrix]\ninclude = []", "[matrix] include: [] must have at least 1 entry"),
    Row("a floor of nothing", "", "[floors]\nlatency = 0", "[floors] latency: 0 must be more than 0"),
    Row("a floor in percent", "", "[floors]\nlatency = 0.01\ncompile-time = 10",
        "[floors] compile-time: 10 must be less than 1"),
    Row("a floor in words", "", '[floors]\nlatency = "1 %"', "[floors] latency: '1 %' must be a number"),
    Row("a floor of a metric that is exact", "", "[floors]\ncopies = 0.01",
        "[floors] copies: a metric that is exact has no floor; remove it, or say in a [gates] table how much it may "
        "change"),
    Row("a floor of a misspelt metric", "", "[floors]\ncompile_time = 0.1",
        "[floors] compile_time: there is no metric 'compile_time'; did you mean \"compile-time\"?"),
    Row("a floor of no metric", "", "[floors]\nx = 0.1",
        "[floors] x: there is no metric 'x'; known: compile-time, copies, device-peak-memory, dispatch-size, "
        "dispatches, fills, host-peak-memory, instructions, latency, module-size, transient-memory"),
    Row("a gate of a misspelt metric", "", '[gates.memory]\nmetric = "transient-memori"',
        "[gates.memory] metric: there is no metric 'transient-memori'; did you mean \"transient-memory\"?"),
    Row("a gate of an op count at no phase", "", '[ir]\nflow = ["flow.*"]\n[gates.ops]\nmetric = "flows/flow.*"',
        "[gates.ops] metric: there is no metric 'flows/flow.*'; known: compile-time, copies, device-peak-memory, "
        "dispatch-size, dispatches, fills, host-peak-memory, instructions, latency, module-size, transient-memory"),
    Row("a gate without metric", "", "[gates.memory]\nrelative = 0.1", "[gates.memory] metric is missing; add it"),
    Row("a gate that limits below nothing", "", '[gates.memory]\nmetric = "copies"\nrelative = -0.1',
        "[gates.memory] relative: -0.1 must be at least 0"),
    Row("a gate that allows less than nothing", "", '[gates.memory]\nmetric = "copies"\nabsolute = -1',
        "[gates.memory] absolute: -1 must be at least 0"),
    Row("a gate of no direction", "", '[gates.memory]\nmetric = "copies"\ndirection = "up"',
        "[gates.memory] direction: 'up' must be one of 'increase', 'decrease', 'any'"),
    Row("a gate of no case", "", '[gates.memory]\nmetric = "copies"\ncases = ""',
        "[gates.memory] cases: '' must not be empty"),
    Row("a misspelt key of a gate", "", '[gates.memory]\nmetric = "copies"\ncase = "*"',
        '[gates.memory] case is not a known key; did you mean "cases"?'),
    Row("a gate's name with a blank", "", '[gates."the memory"]\nmetric = "copies"',
        f"[gates]: the name 'the memory' {NAMES}"),
    Row("a gate without a table", "", '[gates]\nmetric = "copies"', "[gates] metric: 'copies' must be a table"),
    Row("ops at a misspelt phase", "", '[ir]\nflows = ["flow.*"]',
        "[ir]: there is no phase 'flows'; did you mean \"flow\"?"),
    Row("an op that is not in a list", "", '[ir]\nflow = "flow.*"', "[ir] flow: 'flow.*' must be a list"),
    Row("a phase without ops", "", "[ir]\nflow = []", "[ir] flow: [] must have at least 1 entry"),
    Row("an op without a name", "", '[ir]\nflow = ["flow.*", ""]', "[ir] flow[1]: '' must not be empty"),
    Row("an op that is none", "", '[ir]\nflow = ["flow.dispatch, flow.tensor.update"]',
        f"[ir] flow[0]: 'flow.dispatch, flow.tensor.update' {OP}"),
    Row("an op on two lines", "", '[ir]\nflow = ["flow.*\\nhal.*"]', f"[ir] flow[0]: 'flow.*\\nhal.*' {OP}"),
    Row("an op with a name that is too long", "", f'[ir]\nflow = ["{"x" * 101}"]',
        f"[ir] flow[0]: '{'x' * 59}... must have at most 100 characters"),
    Row("a number where an op belongs", "", "[ir]\nflow = [1]", "[ir] flow[0]: 1 must be a string"),
    Row("ops without a phase", "", '[ir]\nops = ["flow.*"]',
        "[ir]: there is no phase 'ops'; known: abi, bufferized, dispatch-creation, encodings, "
        "executable-configurations, "
        "executable-sources, executable-targets, flow, global-optimization, hal, input, preprocessing, start, stream, "
        "vm"),
    Row("a group of one", "", '[[groups]]\ntitle = "Tiling"\nvariants = ["stock"]',
        "[[groups]] #1 variants: ['stock'] must have at least 2 entries"),
]  # fmt: skip

MEANING = [
    Row("a Vulkan driver elsewhere", "", 'vulkan_driver = "lavapipe"',
        "[devices.cpu] vulkan_driver is for the URI vulkan, and uri is 'local-sync'; remove it"),
    Row("threads on the thread that calls", "", "threads = 2",
        "[devices.cpu] threads: local-sync computes on one thread, so use local-task, or remove threads"),
    Row("threads on one core", 'uri = "local-sync"', 'uri = "local-task"\npin = true\nthreads = 2',
        "[devices.cpu] has pin, for one core, and threads = 2; remove one of them"),
    Row("a baseline that is no variant", '"stock"', '"stok"',
        "baseline: there is no variant 'stok'; did you mean \"stock\"?"),
    Row("a baseline that is like no variant", '"stock"', '"none"',
        "baseline: there is no variant 'none'; known: stock, tiled"),
    Row("an unknown flag set", '"tiling"]', '"tilings"]',
        "[variants.tiled] flagsets: there is no flag set 'tilings'; did you mean \"tiling\"?"),
    Row("a flag set without flag-set files", 'flagset_files = ["flags.toml"]\n', "",
        "[variants.tiled] flagsets: there is no flag set 'tiling'; no flagset_files are given"),
    Row("a flag-set file that is not there", '"flags.toml"', '"flag.toml"',
        "flagset_files: there is no file flag.toml beside the suite; check the path"),
    Row("a flag-set file that is there twice", '["flags.toml"]', '["flags.toml", "flags.toml"]',
        "flagset_files: 'flags.toml' is there twice; remove one of them"),
    Row("a group of an unknown variant", "",
        '[[groups]]\ntitle = "A"\nvariants = ["stock", "tiled"]\n[[groups]]\ntitle = "B"\nvariants = ["stock", "tile"]',
        "[[groups]] #2 variants: there is no variant 'tile'; did you mean \"tiled\"?"),
    Row("a group that names a variant twice", "", '[[groups]]\ntitle = "A"\nvariants = ["stock", "stock"]',
        "[[groups]] #1 variants: 'stock' is there twice; remove one of them"),
    Row("ops at a place that is none", "", '[ir]\nflow = ["dispatch:arith.addf"]',
        "[ir]: there is no place 'dispatch', as in 'dispatch:arith.addf'; write host:... or executables:..."),
    Row("ops at two places", "", '[ir]\nflow = ["host:executables:arith.addf"]',
        "[ir]: there is no place 'host:executables', as in 'host:executables:arith.addf'; write host:... or "
        "executables:..."),
    Row("an op that is counted twice", "", '[ir]\nstart = ["a.*"]\nflow = ["a.*", "b.*", "a.*"]',
        "[ir] flow: 'a.*' is there twice; remove one of them"),
    Row("a gate of an op that is not counted", "", '[ir]\nflow = ["flow.*"]\n[gates.ops]\nmetric = "input/linalg.fill"',
        "[gates.ops] metric: 'input/linalg.fill' is not counted; add 'linalg.fill' to input in [ir]"),
    Row("a gate of an op where none is counted", "", '[gates.ops]\nmetric = "flow/flow.tensor.update"',
        "[gates.ops] metric: 'flow/flow.tensor.update' is not counted; add 'flow.tensor.update' to flow in [ir]"),
    Row("a gate of a misspelt op", "",
        '[ir]\nflow = ["flow.tensor.update"]\n[gates.ops]\nmetric = "flow/flow.tensor.updates"',
        "[gates.ops] metric: 'flow/flow.tensor.updates' is not counted; did you mean \"flow/flow.tensor.update\"?"),
    Row("a model of no kind", 'mlir = "net.mlir"\n', "",
        "[models.net] needs exactly one of builder, mlir and onnx, and has none"),
    Row("a model of two kinds", 'mlir = "net.mlir"\n', 'mlir = "net.mlir"\nonnx = "net.onnx"\n',
        "[models.net] needs exactly one of builder, mlir and onnx, and has mlir and onnx"),
    Row("a model file that is not there", '"net.mlir"', '"nets/net.mlir"',
        "[models.net] mlir: there is no file nets/net.mlir beside the suite; check the path"),
    Row("a model file without a name", '"net.mlir"', '""',
        "[models.net] mlir: the path is empty; add it"),
    Row("a model file with a name that no system takes", '"net.mlir"', f'"{"n" * 5000}"',
        f"[models.net] mlir: '{'n' * 59}... cannot be looked up (File name too long); check the path"),
    Row("an mlir file without function", 'function = "main"\n', "",
        "[models.net] function is missing; an mlir file needs its entry function and inputs"),
    Row("an mlir file without inputs", f"{INPUT}\n", "",
        "[models.net] inputs are missing; an mlir file needs its entry function and inputs"),
    Row("parameters of a builder for a file", INPUT, f"{INPUT}\nparams = {{ height = 4 }}",
        "[models.net] params are for builders; remove them or name a builder"),
    Row("inputs for a builder", f'mlir = "net.mlir"\nfunction = "main"\n{INPUT}', f'builder = "any"\n{INPUT}',
        "[models.net] inputs are for mlir and onnx files; a builder gives its own, so remove them"),
    Row("a function for a builder", f'mlir = "net.mlir"\nfunction = "main"\n{INPUT}', 'builder = "any"\nfunction = "f"',
        "[models.net] function is for mlir and onnx files; a builder gives its own, so remove it"),
    Row("an opset for an mlir file", INPUT, f"{INPUT}\nopset = 17", "[models.net] opset is for onnx files; remove it"),
    Row("an opset for a builder", f'mlir = "net.mlir"\nfunction = "main"\n{INPUT}', 'builder = "any"\nopset = 17',
        "[models.net] opset is for onnx files; remove it"),
    Row("ONNX Runtime for an mlir file", INPUT, f'{INPUT}\nreference = "onnxruntime"',
        '[models.net] reference = "onnxruntime" is for onnx files and builders; leave it out'),
    Row("weights that are not there", INPUT, f'{INPUT}\nparameters = {{ model = "weights.irpa" }}',
        "[models.net] parameters.model: there is no file weights.irpa beside the suite; check the path"),
    Row("right outputs that are not there", INPUT, f'{INPUT}\nexpected = ["y.npy"]',
        "[models.net] expected: there is no file y.npy beside the suite; check the path"),
    Row("an input without shape", INPUT, "inputs = [{ shape = [4] }, { seed = 1 }]",
        "[models.net] inputs[1] shape is missing; add it, or values from an npy file"),
    Row("an input of two kinds", INPUT, "inputs = [{ shape = [4], seed = 1, value = 2 }]",
        "[models.net] inputs[0] has seed and value; keep one of them"),
    Row("a shape that the file says too", INPUT, 'inputs = [{ shape = [4], npy = "net.mlir" }]',
        "[models.net] inputs[0] has shape and npy; the .npy file says its shape, so remove shape"),
    Row("an input file that is not there", INPUT, 'inputs = [{ npy = "x.npy" }]',
        "[models.net] inputs[0] npy: there is no file x.npy beside the suite; check the path"),
]  # fmt: skip

# The same for flags.toml, whose sentences begin with `flags.toml: `.
FLAG_SET_FORM = [
    Row("a misspelt key", "compile =", "compiler =",
        '[flagsets.tiling] compiler is not a known key; did you mean "compile"?'),
    Row("a string where a list belongs", '["--iree-opt-data-tiling"]', '"--iree-opt-data-tiling"',
        "[flagsets.tiling] compile: '--iree-opt-data-tiling' must be a list"),
    Row("a flag without dashes", '"--iree', '"iree', "[flagsets.tiling] compile[0]: 'iree-opt-data-tiling' must start "
        "with a dash and a letter, like --iree-opt-level=O3"),
    Row("a flag set's name with a blank", "[flagsets.tiling]", '[flagsets."data tiling"]',
        f"[flagsets]: the name 'data tiling' {NAMES}"),
    Row("no flag set", '[flagsets.tiling]\ncompile = ["--iree-opt-data-tiling"]\n', "[flagsets]",
        "flagsets: {} must have at least 1 entry"),
    Row("a suite in place of flag sets", "[flagsets.tiling]", "[variants.tiling]",
        "variants is not a known key; known: flagsets (and 1 more error)"),
]  # fmt: skip

FLAG_SET_MEANING = [
    Row("releases that are no version specifier", "compile =", 'toolchains = "3.x"\ncompile =',
        "[flagsets.tiling] toolchains: '3.x' is not a version specifier; write it like '>=3.8,<4'"),
]  # fmt: skip
