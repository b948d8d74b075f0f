#!/usr/bin/env bash
# Install the harness into an environment of its own, and put `harness` alone on the path of the steps that follow:
# the Python of the workflow that uses this stays as it is.
# usage: install.sh FOLDER_OF_THE_HARNESS
#   HARNESS_PYTHON       the Python for it (default: python3)
#   HARNESS_EXTRAS       extras of the harness, as in onnxruntime,halide
#   HARNESS_PACKAGES     further packages, as in s3fs for a history in a bucket, with spaces between
#   HARNESS_CONSTRAINTS  file with the versions to install, as `pip freeze` writes it (default: the newest that fit).
#                        A file with hashes has to name everything, also what builds the harness; nothing else is taken.
#   RUNNER_TEMP, GITHUB_PATH    as GitHub sets them
set -euo pipefail

source_folder=$1
constraints=${HARNESS_CONSTRAINTS:-}
environment="$RUNNER_TEMP/harness-environment"
commands="$RUNNER_TEMP/harness-commands"
harness="$source_folder${HARNESS_EXTRAS:+[$HARNESS_EXTRAS]}"

if [ -n "$constraints" ] && [ ! -f "$constraints" ]; then
    echo "constraints: there is no file $constraints; check out what has it first, or leave it out" >&2
    exit 2
fi
"${HARNESS_PYTHON:-python3}" -m venv "$environment"
read -ra packages <<<"${HARNESS_PACKAGES:-}"
pip=("$environment/bin/python" -m pip --quiet --disable-pip-version-check)
if [ -z "$constraints" ]; then
    "${pip[@]}" install "$harness" ${packages[@]+"${packages[@]}"}
elif grep -q -e '--hash=' "$constraints"; then
    # A folder has no hash, so that the harness itself goes in by a call of its own, which takes nothing from an index.
    "${pip[@]}" install --require-hashes --requirement "$constraints"
    "${pip[@]}" install --no-index --no-build-isolation "$harness" ${packages[@]+"${packages[@]}"}
else
    # The second variable is for what builds the harness, since pip 25.3; before, the first is for that too.
    PIP_CONSTRAINT=$(realpath "$constraints") PIP_BUILD_CONSTRAINT=$(realpath "$constraints") \
        "${pip[@]}" install "$harness" ${packages[@]+"${packages[@]}"}
fi
mkdir -p "$commands"
ln -sf "$environment/bin/harness" "$commands/harness"
echo "$commands" >>"$GITHUB_PATH"
"$commands/harness" --version
