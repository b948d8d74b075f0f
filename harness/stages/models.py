"""[Case] -> models' MLIR and inputs."""

from __future__ import annotations

from harness.cache import cache_root
from harness.errors import CaseError, RunError, SuiteError
from harness.models.materialize import ModelArtifact, materialize
from harness.process import Limits
from harness.progress import Progress
from harness.records.run import Failure
from harness.stages.prepare import Prepared


def materialize_models(prepared: Prepared, limits: Limits, progress: Progress) -> dict[str, ModelArtifact | Failure]:
    """Build or import the models of all cases that will run; by name, a failure where one could not be made.

    Raises:
        RunError: The cache cannot be written.
    """
    wanted = {case.model for case in prepared.cases if case.skip is None}
    models = [model for model in prepared.suite.models if model.name in wanted]
    progress.stage("Models", len(models))
    artifacts: dict[str, ModelArtifact | Failure] = {}
    for model in models:
        progress.step(model.name, advance=0)
        try:
            artifacts[model.name] = materialize(
                model,
                store=cache_root() / "models",
                toolchain=prepared.toolchain,
                limits=limits,
                with_onnx=bool(prepared.peers) or model.reference == "onnxruntime",
            )
        except SuiteError as error:  # such as an ONNX file whose inputs the suite has to give: the others go on
            artifacts[model.name] = Failure(stage="model", message=f"{prepared.suite.path}: {error}")
        except CaseError as error:
            artifacts[model.name] = Failure(stage="model", message=str(error), stderr=error.stderr)
        except OSError as error:
            raise RunError(
                f"{cache_root()}: the cache cannot be written ({error.strerror}); make room or set HARNESS_CACHE"
            ) from None
        progress.step(model.name)
    return artifacts
