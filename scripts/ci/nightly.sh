#!/usr/bin/env bash
# One night: measure into the history, tell what the history says now, or search the releases that began its new steps.
# usage: nightly.sh measure|report|bisect
#   HARNESS_HISTORY      the results folder of all nights, a path or a URL; history.sh sets it
#   HARNESS_SUITE        a suite or a list of suites
#   HARNESS_REFERENCE    release of IREE that stays the same from night to night, so that its changes are the machine's
#   HARNESS_TOOLCHAIN    what is measured beside it (default: newest)
#   HARNESS_BISECT_BUDGET    seconds for all searches together (default: 1800)
#   HARNESS_CACHE, RUNNER_TEMP, GITHUB_OUTPUT, GITHUB_STEP_SUMMARY    as the harness and GitHub set them
# Outputs of measure: status (of harness run). Of report: changes (a Markdown file), changed (whether the compiler made
# something slower lately, or a case fails since then), site (the dashboard's folder). bisect writes its answers into
# the file of changes; what a night has no time for goes on in the next, so searches lie in the cache.
set -euo pipefail

# shellcheck source=scripts/ci/output.sh
. "$(dirname "${BASH_SOURCE[0]}")/output.sh"

changes="$RUNNER_TEMP/changes.md"

measure() {
    local status=0 new="$RUNNER_TEMP/new-runs"
    harness run "$HARNESS_SUITE" --toolchain "$HARNESS_REFERENCE" --toolchain "${HARNESS_TOOLCHAIN:-newest}" \
        --results "$new" || status=$?
    # 3 says that some case failed; that is a point of the history too.
    if [ "$status" -ne 0 ] && [ "$status" -ne 3 ] && [ -z "$(ls -A "$new" 2>/dev/null)" ]; then
        exit "$status"
    fi
    harness results merge "$new" --into "$HARNESS_HISTORY"
    output "$GITHUB_OUTPUT" status "$status"
}

report() {
    local status=0 site="$RUNNER_TEMP/site"
    find_changes || status=$?
    cat "$changes" >>"$GITHUB_STEP_SUMMARY"
    harness dashboard "$HARNESS_HISTORY" --out "$site"
    output "$GITHUB_OUTPUT" changes "$changes"
    output "$GITHUB_OUTPUT" changed "$([ "$status" -ne 0 ] && echo true || echo false)"
    output "$GITHUB_OUTPUT" site "$site"
}

bisect() {
    find_changes --bisect "${HARNESS_BISECT_BUDGET:-1800}" \
        --bisect-results "${HARNESS_CACHE:-$HOME/.cache/iree-harness}/bisects" || true
}

# find_changes OPTION...: write them to the file. Status 1: the compiler made something slower; 3: a case fails that did not
# before. Any other ends the step.
find_changes() {
    local status=0
    harness history "$HARNESS_HISTORY" --changes --format markdown --out "$changes" "$@" || status=$?
    [ "$status" -eq 0 ] || [ "$status" -eq 1 ] || [ "$status" -eq 3 ] || exit "$status"
    return "$status"
}

case ${1:-} in
measure) measure ;;
report) report ;;
bisect) bisect ;;
*)
    echo "usage: nightly.sh measure|report|bisect" >&2
    exit 2
    ;;
esac
