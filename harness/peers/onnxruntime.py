"""ONNX Runtime's CPU provider, called through bindings that neither copy arguments nor allocate results."""

from collections.abc import Sequence
from functools import partial
from importlib.metadata import version

import numpy as np

from harness.models.onnx_file import session_options
from harness.peers.peer import Array, Peer, PeerModel, Ready, Setting, missing_package, onnx_file, refuses_onnx
from harness.plugins.options import NoOptions


def prepare(model: PeerModel, arguments: Sequence[Array], setting: Setting, _: NoOptions) -> Ready:
    """A session with its arguments and results bound; one call is made to learn the results' shapes."""
    import onnxruntime

    options = session_options(setting.threads)
    # Threads wait for work asleep: others take turns on the same cores.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(str(onnx_file(model)), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    first = session.run(None, dict(zip(names, arguments, strict=True)))
    inputs = [onnxruntime.OrtValue.ortvalue_from_numpy(np.require(value, requirements="C")) for value in arguments]
    outputs = [onnxruntime.OrtValue.ortvalue_from_numpy(np.array(value)) for value in first]
    binding = session.io_binding()
    for name, value in zip(names, inputs, strict=True):
        binding.bind_ortvalue_input(name, value)
    for output, value in zip(session.get_outputs(), outputs, strict=True):
        binding.bind_ortvalue_output(output.name, value)
    kept = {"inputs": inputs, "outputs": outputs}  # the binding has their addresses, and keeps no array alive
    return Ready(
        call=partial(session.run_with_iobinding, binding),
        outputs=lambda: [np.array(value.numpy()) for value in kept["outputs"]],
    )


PEER = Peer(
    name="onnxruntime",
    title="ONNX Runtime",
    description="ONNX Runtime's CPU provider, its graph optimisations on, threads asleep while they wait",
    install="pip install 'iree-harness[onnxruntime]'",
    options=NoOptions,
    missing=partial(missing_package, "onnxruntime"),
    version=partial(version, "onnxruntime"),
    refuses=refuses_onnx,
    prepare=prepare,
)
