"""Peers by registered name: what installed packages offer, what can be wrong with it, and their options."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from harness.errors import SuiteError
from harness.peers import PeerModel, onnxruntime, pytorch
from harness.peers.peer import PEERS, AppliedPeer, apply_peer, find_peer
from tests.builders import register


def refusal(name: str, **options: Any) -> str:
    with pytest.raises(SuiteError) as caught:
        apply_peer(name, options, name, "peers[0]")
    return str(caught.value)


def test_the_built_in_peers_are_registered() -> None:
    assert {"halide", "libxsmm", "onnxruntime", "openvino", "pytorch", "tvm"} <= set(PEERS.names)
    for name in PEERS.names:
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


def test_names_that_stand_for_no_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, PEERS.group, ("tflite", onnxruntime.PEER))
    assert refusal("tflight") == "peers[0]: there is no peer 'tflight'; did you mean \"tflite\"?"
    assert refusal("tflite") == "peers[0]: peer 'tflite' calls itself 'onnxruntime'; ask its package's author"


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.peers.peer.find_spec", lambda _: None)
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
