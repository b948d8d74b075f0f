"""Peers by registered name: what installed packages offer, what can be wrong with it, and their options."""

from __future__ import annotations

import dataclasses
import sys
from importlib.metadata import EntryPoint, EntryPoints
from types import ModuleType
from typing import Any

import pytest

from harness.errors import SuiteError
from harness.peers import Peer, PeerModel, onnxruntime, pytorch, registry
from harness.peers.registry import AppliedPeer, apply_peer, find_peer, registered_peers


def register(monkeypatch: pytest.MonkeyPatch, *points: tuple[str, str], **objects: object) -> None:
    """Pretend that these names are installed; `name=...` is what `a_package:name` is."""
    module = ModuleType("a_package")
    vars(module).update(objects)
    monkeypatch.setitem(sys.modules, "a_package", module)
    installed = EntryPoints(EntryPoint(name, value, registry.ENTRY_POINT_GROUP) for name, value in points)
    monkeypatch.setattr(registry, "entry_points", lambda **wanted: installed.select(**wanted))


def refusal(name: str, **options: Any) -> str:
    with pytest.raises(SuiteError) as caught:
        apply_peer(name, options, name, "peers[0]")
    return str(caught.value)


def test_the_built_in_peers_are_registered() -> None:
    assert {"halide", "libxsmm", "onnxruntime", "openvino", "pytorch", "tvm"} <= set(registered_peers())
    for name in registered_peers():
        peer = find_peer(name)
        assert peer.name == name
        assert isinstance(peer.missing(), str | None)


def test_options_are_checked_and_completed() -> None:
    applied = apply_peer("pytorch", {"mode": "eager"}, "torch-eager")
    assert (applied.peer, applied.label, applied.name) == (pytorch.PEER, "torch-eager", "pytorch")
    assert applied.options == {"mode": "eager", "freeze": True}
    assert applied.checked == pytorch.Options(mode="eager")
    assert refusal("pytorch", mod="eager") == (
        "peers[0]: pytorch.mod is not an option of peer 'pytorch'; did you mean \"mode\"?"
    )
    assert refusal("pytorch", mode="jit") == "peers[0]: pytorch.mode: input should be 'compile' or 'eager', not 'jit'"
    assert refusal("onnxruntime", threads=2) == (
        "peers[0]: onnxruntime.threads is not an option of peer 'onnxruntime'; it has none"
    )


ORT, TFLITE = ("onnxruntime", "a_package:ORT"), ("tflite", "a_package:TFLITE")


@pytest.mark.parametrize(
    ("name", "points", "message"),
    [
        ("onnxruntimes", [ORT, TFLITE], "there is no peer 'onnxruntimes'; did you mean \"onnxruntime\"?"),
        (
            "caffe",
            [ORT, TFLITE],
            "there is no peer 'caffe'; known: onnxruntime, tflite; install the package that brings it",
        ),
        (
            "tvm",
            [],
            "there is no peer 'tvm'; no installed package registers a peer; install the package that brings it",
        ),
        (
            "tflite",
            [TFLITE, ("tflite", "b_package:TWO")],
            "peer 'tflite' is registered by a_package:TFLITE and by b_package:TWO; remove all packages but one",
        ),
        (
            "broken",
            [("broken", "no_such_package:PEER")],
            "peer 'broken': no_such_package:PEER cannot be loaded (No module named 'no_such_package'); "
            "repair or remove the package that registers it",
        ),
        (
            "odd",
            [("odd", "a_package:FUNCTION")],
            "peer 'odd': a_package:FUNCTION is not a harness.peers.Peer; ask its package's author",
        ),
        (
            "odd",
            [("odd", "a_package:CLASS")],
            "peer 'odd': a_package:CLASS is not a harness.peers.Peer; ask its package's author",
        ),
        ("tflite", [TFLITE], "peer 'tflite' calls itself 'onnxruntime'; ask its package's author"),
    ],
)
def test_names_that_stand_for_no_peer(
    name: str, points: list[tuple[str, str]], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(monkeypatch, *points, TFLITE=onnxruntime.PEER, CLASS=Peer, FUNCTION=lambda: onnxruntime.PEER)
    assert registered_peers() == tuple(sorted({point for point, _ in points})), "listing imports none"
    assert refusal(name) == f"peers[0]: {message}"


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.peers.values.find_spec", lambda _: None)
    for name, package in (("onnxruntime", "onnxruntime"), ("halide", "halide"), ("tvm", "apache-tvm")):
        missing = f"{package} is not installed; pip install 'iree-harness[{name}]'"
        assert apply_peer(name, {}, name).missing == missing


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
