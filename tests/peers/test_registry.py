"""Peers by registered name: what installed packages offer, what can be wrong with it, and their options."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from types import ModuleType
from typing import Any

import pytest

from harness.errors import SuiteError
from harness.peers import Peer, PeerModel, onnxruntime, pytorch, registry
from harness.peers.registry import AppliedPeer, apply_peer, find_peer, registered_peers

Register = Callable[..., None]


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Register:
    """Pretend that these names are installed, all in a module `a_package`; `name=...` is what `a_package:name` is."""

    def register(*points: tuple[str, str], **objects: object) -> None:
        module = ModuleType("a_package")
        vars(module).update(objects)
        monkeypatch.setitem(sys.modules, "a_package", module)
        installed = EntryPoints(EntryPoint(name, value, registry.ENTRY_POINT_GROUP) for name, value in points)
        monkeypatch.setattr(registry, "entry_points", lambda **wanted: installed.select(**wanted))

    return register


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
    assert (applied.peer, applied.label) == (pytorch.PEER, "torch-eager")
    assert applied.options == {"mode": "eager", "freeze": True}
    assert applied.checked == pytorch.Options(mode="eager")


def test_wrong_options() -> None:
    assert refusal("pytorch", mod="eager") == (
        "peers[0]: pytorch.mod is not an option of peer 'pytorch'; did you mean \"mode\"?"
    )
    assert refusal("pytorch", mode="jit") == ("peers[0]: pytorch.mode: input should be 'compile' or 'eager', not 'jit'")
    assert refusal("onnxruntime", threads=2) == (
        "peers[0]: onnxruntime.threads is not an option of peer 'onnxruntime'; it has none"
    )


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("onnxruntimes", 'did you mean "onnxruntime"?'),
        ("caffe", "known: onnxruntime, tflite; install the package that brings it"),
    ],
)
def test_an_unknown_name(name: str, hint: str, register: Register) -> None:
    register(("onnxruntime", "a_package:ORT"), ("tflite", "a_package:TFLITE"))
    assert refusal(name) == f"peers[0]: there is no peer '{name}'; {hint}"


def test_an_unknown_name_where_no_peer_is_installed(register: Register) -> None:
    register()
    assert refusal("onnxruntime") == (
        "peers[0]: there is no peer 'onnxruntime'; no installed package registers a peer; "
        "install the package that brings it"
    )


def test_a_name_that_two_packages_register_is_nobodys(register: Register) -> None:
    register(("tflite", "a_package:ONE"), ("tflite", "b_package:TWO"))
    assert refusal("tflite") == (
        "peers[0]: peer 'tflite' is registered by a_package:ONE and by b_package:TWO; remove all packages but one"
    )


def test_listing_peers_imports_none(register: Register) -> None:
    register(("broken", "no_such_package:PEER"))
    assert registered_peers() == ("broken",)
    assert refusal("broken") == (
        "peers[0]: peer 'broken': no_such_package:PEER cannot be loaded (No module named 'no_such_package'); "
        "repair or remove the package that registers it"
    )


@pytest.mark.parametrize("something", [Peer, lambda: onnxruntime.PEER], ids=["class", "function"])
def test_something_else_than_a_peer(something: object, register: Register) -> None:
    register(("odd", "a_package:ODD"), ODD=something)
    assert refusal("odd") == "peers[0]: peer 'odd': a_package:ODD is not a harness.peers.Peer; ask its package's author"


def test_a_peer_of_another_name(register: Register) -> None:
    register(("tflite", "a_package:ODD"), ODD=onnxruntime.PEER)
    assert refusal("tflite") == "peers[0]: peer 'tflite' calls itself 'onnxruntime'; ask its package's author"


def test_what_is_missing_is_told_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    applied = apply_peer("onnxruntime", {}, "ort")
    monkeypatch.setattr("harness.peers.values.find_spec", lambda _: None)
    assert applied.missing == "onnxruntime is not installed; pip install 'iree-harness[onnxruntime]'"
    assert apply_peer("tvm", {}, "tvm").missing == "apache-tvm is not installed; pip install 'iree-harness[tvm]'"


def _broken(error: Exception) -> Any:
    def fail(*_: object) -> str:
        raise error

    return fail


def test_a_peer_that_cannot_say_whether_it_is_here_is_taken_for_missing() -> None:
    """Whatever a package does wrong concerns its own cases only."""
    peer = dataclasses.replace(onnxruntime.PEER, missing=_broken(RuntimeError("boom\nand more")))
    applied = AppliedPeer(peer=peer, label="ort", options={})
    said = "ONNX Runtime cannot say whether it is here (RuntimeError: boom and more); ask its package's author"
    assert applied.missing == said


def test_a_peer_that_cannot_say_whether_it_has_a_program_is_skipped() -> None:
    applied = AppliedPeer(
        peer=dataclasses.replace(onnxruntime.PEER, refuses=_broken(KeyError("shape"))), label="ort", options={}
    )
    said = "ONNX Runtime cannot say whether it can run net (KeyError: 'shape'); ask its package's author"
    assert applied.refuses(PeerModel(name="net", builder=None, inputs=())) == said


def test_a_peer_without_a_version_is_measured_all_the_same() -> None:
    applied = AppliedPeer(
        peer=dataclasses.replace(onnxruntime.PEER, version=_broken(ImportError("no metadata"))), label="ort", options={}
    )
    assert applied.version == "ONNX Runtime of unknown version"
