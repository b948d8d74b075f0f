#!/usr/bin/env bash
# What a change does: base and head compiled on this machine, and measured side by side where they differ.
# action.yml runs this in the repository's folder; docs/ci.md says what it is for.
#   HARNESS_SUITE                the suite's file, from the repository's root
#   HARNESS_RESULTS              folder for runs and comparisons (default: harness-results)
#   HARNESS_BASE                 commit to compare with (default: the merge base with the pull request's base branch)
#   HARNESS_BASE_TOOLCHAIN, HARNESS_HEAD_TOOLCHAIN    compare these releases of IREE instead of two commits
#   HARNESS_PREPARE              commands that are run in the base's tree and in the head's before each is compiled, with
#                                the harness's own Python as `python`: such as pip install ./plugins
#   HARNESS_FILTER               only cases that match one of these patterns, one a line
#   HARNESS_ROW_BUDGET, HARNESS_COMPILE_BUDGET, HARNESS_CONTROLS    options of harness compare
#   RUNNER_TEMP, GITHUB_OUTPUT, GITHUB_STEP_SUMMARY, GITHUB_BASE_REF    as GitHub sets them
# Outputs: report (what was made: a comparison's folder, or a run's where there is no base), upload (a folder of data
# for the job that posts it), verdict (passed, regressed, failed, inconclusive), status (the exit status).
# It ends with 0 whatever the verdict is, and with something else only where there is nothing to report.
set -euo pipefail

# shellcheck source=scripts/ci/base.sh
. "$(dirname "${BASH_SOURCE[0]}")/base.sh"

suite=$HARNESS_SUITE
results=${HARNESS_RESULTS:-harness-results}
filters=()
while IFS= read -r pattern; do
    [ -z "$pattern" ] || filters+=(--filter "$pattern")
done <<<"${HARNESS_FILTER:-}"
mkdir -p "$results"
results=$(cd "$results" && pwd)
log="$RUNNER_TEMP/harness.log"

main() {
    upload=$(fresh "$results/upload")
    [ -f "$suite" ] || fail "suite $suite: there is no such file in this checkout; correct the input suite"
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

compare_commits() {
    local base base_run head_run status=0
    if ! base=$(base_commit); then
        report_alone "there is no commit to compare with: $base"
        return
    fi
    git worktree prune
    git worktree add --quiet --force --detach "$RUNNER_TEMP/harness-base" "$base"
    trap 'git worktree remove --force "$RUNNER_TEMP/harness-base" || true' EXIT
    if [ ! -f "$RUNNER_TEMP/harness-base/$suite" ]; then
        report_alone "$suite is not there in the base $(short "$base")"
        return
    fi
    note "base $(short "$base")"
    base_run=$(compiled "$RUNNER_TEMP/harness-base" "$(fresh "$results/base-$(short "$base")")") || status=$?
    [ "$status" -ne 2 ] || fail "$(last_word)"
    if [ "$status" -ne 0 ]; then
        report_alone "$suite cannot be run in the base $(short "$base"): $(last_word)"
        return
    fi
    note "head $(short HEAD)"
    head_run=$(compiled . "$(fresh "$results/head-$(short HEAD)")") || fail "$(last_word)"
    compare "$(relative "$base_run")" "$(relative "$head_run")" --by-name || status=$?
    if [ "$status" -eq 2 ]; then
        report_alone "base $(short "$base") and head cannot be compared: $(last_word)"
        return
    fi
    report_comparison "$status"
}

# compiled TREE FOLDER: compile and check the suite as it is in that tree; the run's folder. Status 1: it cannot be run;
# 2: it is a list of suites.
compiled() {
    local status=0
    if [ -n "${HARNESS_PREPARE:-}" ]; then
        (cd "$1" && PATH="$RUNNER_TEMP/harness-environment/bin:$PATH" logged bash -euo pipefail -c "$HARNESS_PREPARE") ||
            return 1
    fi
    (cd "$1" && logged harness run "$suite" --no-measure --results "$2" ${filters[@]+"${filters[@]}"}) || status=$?
    # 3 says that some case failed, which the comparison shows row by row.
    [ "$status" -eq 0 ] || [ "$status" -eq 3 ] || return 1
    only_run "$2"
}

compare() {
    logged harness compare "$@" --results "$results" ${filters[@]+"${filters[@]}"} \
        --row-budget "${HARNESS_ROW_BUDGET:-15}" --compile-budget "${HARNESS_COMPILE_BUDGET:-30}" \
        --controls "${HARNESS_CONTROLS:-2}"
}

report_comparison() {
    local folder
    folder=$(newest_comparison)
    mkdir "$upload"
    cp "$folder/comparison.json" "$upload/"
    summarise "$folder"
    tell "$folder" "$1"
}

# Where there is no base: what the head's variants do against its baseline, and why nothing is compared.
report_alone() {
    local alone folder status=0
    alone=$(fresh "$results/alone")
    note "$1; the head is measured alone"
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
    {
        echo "report=$(relative "$1")"
        echo "upload=$(relative "$upload")"
        echo "verdict=$verdict"
        echo "status=$2"
    } >>"$GITHUB_OUTPUT"
    note "verdict: $verdict (exit status $2), in $(relative "$1")"
}

# What a command prints goes to the job's log and to a file, in which the sentence stands that says what failed.
logged() {
    "$@" 2>&1 | tee "$log" >&2
}

last_word() {
    { grep '^harness: ' "$log" || tail -n 1 "$log"; } | tail -n 1 | sed 's/^harness: //'
}

# fresh FOLDER: that name, or with a number where it is taken, as where an action is used twice in a job.
fresh() {
    local name=$1 number=2
    while [ -e "$name" ]; do
        name="$1-$number"
        number=$((number + 1))
    done
    printf '%s\n' "$name"
}

# only_run FOLDER: the one run in it; a list of suites makes several.
only_run() {
    local runs=("$1"/*/)
    if [ "${#runs[@]}" -ne 1 ]; then
        echo "harness: $suite makes ${#runs[@]} runs; give one suite, not a list of them" >"$log"
        return 2
    fi
    printf '%s\n' "${runs[0]%/}"
}

newest_comparison() {
    local found=("$results"/*-compare*/)
    printf '%s\n' "${found[${#found[@]} - 1]%/}"
}

relative() {
    printf '%s\n' "${1#"$PWD"/}"
}

main
