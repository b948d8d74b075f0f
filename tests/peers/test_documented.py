"""docs/peers.md says what is there: the peers, and an example that works."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from harness.models import mlp
from harness.models.model import Input
from harness.models.onnx_file import run_onnx
from harness.peers import PeerModel, Setting
from harness.peers.peer import find_peer
from harness.plugins.options import as_json
from tests.peers.numpy_peer import PEER, Options
from tests.peers.onnx_models import random

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).parents[2]
TEXT = (REPOSITORY / "docs" / "peers.md").read_text()


def test_the_built_in_peers_are_listed_with_their_options() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| .*? \| (.*?) ?\| .* \|$", TEXT, re.MULTILINE))
    registered = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["entry-points"]
    assert list(rows) == sorted(registered["harness.peers"])
    for name, options in rows.items():
        for option in vars(find_peer(name).options()):
            assert f"`{option}`" in options


def test_the_example_is_shown_as_it_is() -> None:
    shown, _ = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert shown == Path(__file__).with_name("numpy_peer.py").read_text()


@pytest.mark.parametrize("options", [Options(), Options(transposed=True)], ids=str)
@pytest.mark.parametrize("form", ["pytorch", "mlir-gen"])
def test_the_example_computes_what_the_model_does(form: str, options: Options, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    params = mlp.Parameters(layers=2, width=16, batch=4, form=form)  # type: ignore[arg-type]
    model = PeerModel(name="m", builder="mlp", params=as_json(params), inputs=(Input(shape=(4, 16)),))
    assert PEER.refuses(model, options) is None
    x = random(4, 16)
    ready = PEER.prepare(model, [x], Setting(threads=1, cache=tmp_path), options)
    ready.call()
    serialised = mlp.write_onnx(params)
    assert serialised is not None
    (tmp_path / "model.onnx").write_bytes(serialised)
    (expected,) = run_onnx(tmp_path / "model.onnx", [x])
    np.testing.assert_allclose(ready.outputs()[0], expected, rtol=1e-5, atol=1e-5)
