#!/usr/bin/env bash
# Install the harness into an environment of its own, and put `harness` alone on the path of the steps that follow:
# the Python of the workflow that uses this stays as it is.
# usage: install.sh FOLDER_OF_THE_HARNESS
#   HARNESS_PYTHON    the Python for it (default: python3)
#   HARNESS_EXTRAS    extras of the harness, as in onnxruntime,halide
#   HARNESS_PACKAGES  further packages, as in s3fs for a history in a bucket, with spaces between
#   RUNNER_TEMP, GITHUB_PATH    as GitHub sets them
set -euo pipefail

source_folder=$1
environment="$RUNNER_TEMP/harness-environment"
commands="$RUNNER_TEMP/harness-commands"

"${HARNESS_PYTHON:-python3}" -m venv "$environment"
read -ra packages <<<"${HARNESS_PACKAGES:-}"
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check \
    "$source_folder${HARNESS_EXTRAS:+[$HARNESS_EXTRAS]}" ${packages[@]+"${packages[@]}"}
mkdir -p "$commands"
ln -sf "$environment/bin/harness" "$commands/harness"
echo "$commands" >>"$GITHUB_PATH"
"$commands/harness" --version
