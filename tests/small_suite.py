"""The text of a suite with one model, two variants and one device."""

SUITE = """\
name = "small"
baseline = "stock"
flagset_files = ["flags.toml"]

[models.net]
mlir = "net.mlir"
function = "main"
inputs = [{ shape = [4] }]

[variants.stock]

[variants.tiled]
flagsets = ["tiling"]

[devices.cpu]
uri = "local-sync"
backend = "llvm-cpu"
compile_flags = ["--iree-hal-target-device=local"]
"""

FLAGS = """\
[flagsets.tiling]
compile = ["--iree-opt-data-tiling"]
"""
