#!/usr/bin/env bash
# What a change does: base and head compiled on this machine, and measured side by side where they differ.
# action.yml runs this in the repository's folder; docs/ci.md says what it is for.
#   HARNESS_SUITE                the suite's file, from the repository's root
#   HARNESS_RESULTS              folder that gets a new one for runs and comparisons, below RUNNER_TEMP where it is
#                                relative (default: harness-results)
#   HARNESS_BASE                 commit to compare with (default: the merge base with the pull request's base branch)
#   HARNESS_BASE_TOOLCHAIN, HARNESS_HEAD_TOOLCHAIN    compare these releases of IREE instead of two commits
#   HARNESS_PREPARE              commands that are run in the base's tree and in the head's before each is compiled, with
#                                the harness's own Python as `python`: such as python -m pip install ./plugins
#   HARNESS_FILTER               only cases that match one of these patterns, one a line
#   HARNESS_ROW_BUDGET, HARNESS_COMPILE_BUDGET, HARNESS_CONTROLS    options of harness compare
#   HARNESS_EXPLAIN              true: say under the largest regressions what they are made of
#   RUNNER_TEMP, GITHUB_OUTPUT, GITHUB_STEP_SUMMARY, GITHUB_BASE_REF    as GitHub sets them
# Outputs: report (what was made: a comparison's folder, or a run's where there is no base), upload (a folder of data
# for the job that posts it), verdict (passed, regressed, failed, inconclusive), status (the exit status).
# All of them are below a folder that is made here, outside the checkout: a change can commit what looks like results.
# It ends with 0 whatever the verdict is, and with something else only where there is nothing to report.
set -euo pipefail

# shellcheck source=scripts/ci/base.sh
. "$(dirname "${BASH_SOURCE[0]}")/base.sh"
# shellcheck source=scripts/ci/output.sh
. "$(dirname "${BASH_SOURCE[0]}")/output.sh"

suite=$HARNESS_SUITE
filters=()
while IFS= read -r pattern; do
    [ -z "$pattern" ] || filters+=(--filter "$pattern")
done <<<"${HARNESS_FILTER:-}"
explain=()
[ "${HARNESS_EXPLAIN:-false}" != true ] || explain=(--explain)
log="$RUNNER_TEMP/harness.log"

main() {
    [ -f "$suite" ] || fail "suite $suite: there is no such file in this checkout; correct the input suite"
    results=$(fresh_folder "${HARNESS_RESULTS:-harness-results}")
    upload="$results/upload"
    if [ -n "${HARNESS_BASE_TOOLCHAIN:-}${HARNESS_HEAD_TOOLCHAIN:-}" ]; then
        compare_toolchains
    else
        compare_commits
    fi
}

compare_toolchains() {
    if [ -z "${HARNESS_BASE_TOOLCHAIN:-}" ] || [ -z "${HARNESS_HEAD_TOOLCHAIN:-}" ]; then
        fail "base-toolchain and head-toolchain belong together; give both or neither"
    fi
    local status=0
    compare "iree==${HARNESS_BASE_TOOLCHAIN#iree==}" "iree==${HARNESS_HEAD_TOOLCHAIN#iree==}" --suite "$suite" ||
        status=$?
    [ "$status" -ne 2 ] || fail "$(last_word)"
    report_comparison "$status"
}

# Each commit is compiled in a tree of its own, which harness compare makes and takes away.
compare_commits() {
    local base status=0 prepare=()
    if ! base=$(base_commit); then
        report_alone "there is no commit to compare with: $base"
        return
    fi
    [ -z "${HARNESS_PREPARE:-}" ] || prepare=(--prepare "$HARNESS_PREPARE")
    compare "commit:$base" "commit:$(git rev-parse HEAD)" --suite "$suite" ${prepare[@]+"${prepare[@]}"} || status=$?
    if [ "$status" -eq 2 ]; then
        report_alone "$(last_word)"
        return
    fi
    report_comparison "$status"
}

compare() {
    logged harness compare "$@" --results "$results/compared" ${filters[@]+"${filters[@]}"} \
        --row-budget "${HARNESS_ROW_BUDGET:-15}" ${HARNESS_COMPILE_BUDGET:+--compile-budget "$HARNESS_COMPILE_BUDGET"} \
        --controls "${HARNESS_CONTROLS:-2}" ${explain[@]+"${explain[@]}"}
}

report_comparison() {
    local folder
    folder=$(only_folder "$results/compared" comparison.json) || fail "harness compare left no comparison: $(last_word)"
    mkdir "$upload"
    cp "$folder/comparison.json" "$upload/"
    summarise "$folder"
    tell "$folder" "$1"
}

# Where there is no base: what the head's variants do against its baseline, and why nothing is compared.
report_alone() {
    local alone folder status=0
    alone="$results/alone"
    note "$1; the head is measured alone"
    if [ -n "${HARNESS_PREPARE:-}" ]; then
        PATH="$RUNNER_TEMP/harness-environment/bin:$PATH" logged bash -euo pipefail -c "$HARNESS_PREPARE" ||
            fail "$(last_word)"
    fi
    logged harness run "$suite" --results "$alone" ${filters[@]+"${filters[@]}"} || status=$?
    [ "$status" -eq 0 ] || [ "$status" -eq 3 ] || fail "$(last_word)"
    folder=$(only_run "$alone") || fail "$(last_word)"
    mkdir "$upload"
    cp "$folder"/*.json "$folder"/*.jsonl "$upload/"
    printf '%s\n\n' "Nothing was compared: $1" | tr -d '<>' >>"$GITHUB_STEP_SUMMARY"
    summarise "$folder"
    tell "$folder" "$status"
}

summarise() {
    # Its status is that of the comparison, which is told below.
    harness report "$1" --format github --step-summary "$GITHUB_STEP_SUMMARY" \
        --out "$upload/comment.md" --full-out "$upload/report.md" || true
}

tell() {
    local verdict
    case $2 in
    0) verdict=passed ;;
    1) verdict=regressed ;;
    4) verdict=inconclusive ;;
    *) verdict=failed ;;
    esac
    output "$GITHUB_OUTPUT" report "$1"
    output "$GITHUB_OUTPUT" upload "$upload"
    output "$GITHUB_OUTPUT" verdict "$verdict"
    output "$GITHUB_OUTPUT" status "$2"
    note "verdict: $verdict (exit status $2), in $1"
}

# What a command prints goes to the job's log and to a file, in which the sentence stands that says what failed.
logged() {
    "$@" 2>&1 | tee "$log" >&2
}

last_word() {
    { grep '^harness: ' "$log" || tail -n 1 "$log"; } | tail -n 1 | sed 's/^harness: //'
}

# fresh_folder PLACE: a new folder in it, with a name that nobody can have chosen before. actions/upload-artifact takes no
# path with . or .. in it.
fresh_folder() {
    local place=$1
    case $place in
    /*) ;;
    *) place="$RUNNER_TEMP/$place" ;;
    esac
    mkdir -p "$place"
    place=$(cd "$place" && pwd -P)
    mktemp -d "$place/$(date -u +%Y%m%d-%H%M%S)-XXXXXXXX"
}

# only_run FOLDER: the one run in it; a list of suites makes several.
only_run() {
    local runs=("$1"/*/run.json)
    only_folder "$1" run.json || {
        echo "harness: $suite makes ${#runs[@]} runs; give one suite, not a list of them" >"$log"
        return 2
    }
}

# only_folder FOLDER FILE: the one folder in it that has the file, made by the command that was given FOLDER; status 2:
# there is none, or others.
only_folder() {
    local found=("$1"/*/"$2")
    [ "${#found[@]}" -eq 1 ] && [ -f "${found[0]}" ] || return 2
    printf '%s\n' "${found[0]%/*}"
}

main
