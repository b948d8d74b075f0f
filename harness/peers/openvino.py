"""OpenVINO's CPU plugin, called through one inference request with its tensors bound."""

from collections.abc import Sequence
from functools import partial
from importlib.metadata import version

import numpy as np

from harness.peers.peer import Array, Peer, PeerModel, Ready, Setting, missing_package, onnx_file, refuses_onnx
from harness.plugins.options import NoOptions


def prepare(model: PeerModel, arguments: Sequence[Array], setting: Setting, _: NoOptions) -> Ready:
    """One stream of so many threads, computing in the model's own types, on whatever cores the process is held."""
    import openvino

    core = openvino.Core()
    read = core.read_model(str(onnx_file(model)))
    read.reshape({port: list(argument.shape) for port, argument in zip(read.inputs, arguments, strict=True)})
    compiled = core.compile_model(
        read,
        "CPU",
        {
            "INFERENCE_NUM_THREADS": setting.threads,
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            # Else it takes bf16 for f32 where the processor has that.
            "EXECUTION_MODE_HINT": "ACCURACY",
            "ENABLE_CPU_PINNING": False,
            "CACHE_DIR": str(setting.cache),
        },
    )
    request = compiled.create_infer_request()
    arrays = [np.require(argument, requirements="C") for argument in arguments]
    for position, array in enumerate(arrays):
        request.set_input_tensor(position, openvino.Tensor(array))  # a copy: a shared one does not keep the array
    return Ready(
        call=partial(request.infer, share_outputs=True),
        outputs=lambda: [np.array(request.get_output_tensor(place).data) for place in range(len(compiled.outputs))],
    )


PEER = Peer(
    name="openvino",
    title="OpenVINO",
    description="OpenVINO's CPU plugin: one stream, the model's own element types",
    install="pip install 'iree-harness[openvino]'",
    options=NoOptions,
    missing=partial(missing_package, "openvino"),
    version=partial(version, "openvino"),
    refuses=refuses_onnx,
    prepare=prepare,
)
