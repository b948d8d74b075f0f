"""Peers by registered name: what is offered, what can be wrong with it, and that docs/peers.md says so."""

import dataclasses
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import SuiteError
from harness.models import mlp
from harness.models.model import Input
from harness.peers import PeerModel, Setting, onnxruntime, pytorch
from harness.peers.peer import PEERS, AppliedPeer, apply_peer, find_peer
from harness.plugins.options import as_json
from tests.builders import register
from tests.example_plugins.example_plugins import numpy_peer
from tests.example_plugins.example_plugins.numpy_peer import PEER, Options
from tests.models.conftest import run_onnx_bytes


def refusal(name: str, **options: Any) -> str:
    with pytest.raises(SuiteError) as caught:
        apply_peer(name, options, name, "peers[0]")
    return str(caught.value)


def test_options_are_checked_and_completed() -> None:
    applied = apply_peer("pytorch", {"mode": "eager"}, "torch-eager")
    assert (applied.peer, applied.label, applied.name) == (pytorch.PEER, "torch-eager", "pytorch")
    assert applied.options == {"mode": "eager"}
    assert applied.checked == pytorch.Options(mode="eager")
    assert refusal("pytorch", mod="eager") == (
        "peers[0]: pytorch.mod is not an option of peer 'pytorch'; did you mean \"mode\"?"
    )


def test_names_that_stand_for_no_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, PEERS.group, ("tflite", onnxruntime.PEER))
    assert refusal("tflight") == "peers[0]: there is no peer 'tflight'; did you mean \"tflite\"?"
    assert refusal("tflite") == "peers[0]: peer 'tflite' calls itself 'onnxruntime'; ask its package's author"


def broken(field: str, error: Exception) -> AppliedPeer:
    """ONNX Runtime with a function that raises."""

    def fail(*_: object) -> str:
        raise error

    changes: dict[str, Any] = {field: fail}
    return AppliedPeer(peer=dataclasses.replace(onnxruntime.PEER, **changes), label="ort", options={})


def test_whatever_a_package_does_wrong_concerns_its_own_cases_only() -> None:
    advice = "; ask its package's author"
    assert broken("missing", RuntimeError("boom\nand more")).missing == (
        f"ONNX Runtime cannot say whether it is here (RuntimeError: boom and more){advice}"
    )
    assert broken("refuses", KeyError("shape")).refuses(PeerModel(name="net", builder=None, inputs=())) == (
        f"ONNX Runtime cannot say whether it can run net (KeyError: 'shape'){advice}"
    )
    assert broken("version", ImportError("no metadata")).version == "ONNX Runtime of unknown version"


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
        peer = find_peer(name)
        assert isinstance(peer.missing(), str | None)
        for option in vars(peer.options()):
            assert f"`{option}`" in options


def test_the_example_is_shown_as_it_is() -> None:
    shown, _ = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert shown == Path(numpy_peer.__file__).read_text()


@pytest.mark.parametrize("options", [Options(), Options(transposed=True)], ids=str)
@pytest.mark.parametrize("form", ["pytorch", "mlir-gen"])
def test_the_example_computes_what_the_model_does(form: str, options: Options, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    params = mlp.Parameters(layers=2, width=16, batch=4, form=form)  # type: ignore[arg-type]
    model = PeerModel(name="m", builder="mlp", params=as_json(params), inputs=(Input(shape=(4, 16)),))
    assert PEER.refuses(model, options) is None
    x = np.random.default_rng(0).standard_normal((4, 16), dtype=np.float32)
    ready = PEER.prepare(model, [x], Setting(threads=1, cache=tmp_path), options)
    ready.call()
    serialised = mlp.write_onnx(params)
    assert serialised is not None
    (expected,) = run_onnx_bytes(serialised, x)
    np.testing.assert_allclose(ready.outputs()[0], expected, rtol=1e-5, atol=1e-5)
