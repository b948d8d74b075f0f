#!/usr/bin/env bash
# One night: measure into the history, or tell what the history says now.
# usage: nightly.sh measure|report
#   HARNESS_HISTORY      the results folder of all nights, a path or a URL; history.sh sets it
#   HARNESS_SUITE        a suite or a list of suites
#   HARNESS_REFERENCE    release of IREE that stays the same from night to night, so that its changes are the machine's
#   HARNESS_TOOLCHAIN    what is measured beside it (default: newest)
#   HARNESS_TURNS        age after which raw turns are dropped, as in 90d; empty: they are kept
#   RUNNER_TEMP, GITHUB_OUTPUT, GITHUB_STEP_SUMMARY    as GitHub sets them
# Outputs of measure: status (of harness run). Of report: changes (a Markdown file), changed (whether the compiler made
# something slower lately, or a case fails since then), site (the dashboard's folder).
set -euo pipefail

# shellcheck source=scripts/ci/output.sh
. "$(dirname "${BASH_SOURCE[0]}")/output.sh"

measure() {
    local status=0 new="$RUNNER_TEMP/new-runs"
    harness run "$HARNESS_SUITE" --toolchain "$HARNESS_REFERENCE" --toolchain "${HARNESS_TOOLCHAIN:-newest}" \
        --results "$new" || status=$?
    # 3 says that some case failed; that is a point of the history too.
    if [ "$status" -ne 0 ] && [ "$status" -ne 3 ] && [ -z "$(ls -A "$new" 2>/dev/null)" ]; then
        exit "$status"
    fi
    harness results merge "$new" --into "$HARNESS_HISTORY"
    harness results compact "$HARNESS_HISTORY"
    if [ -n "${HARNESS_TURNS:-}" ]; then
        harness results gc "$HARNESS_HISTORY" --older-than "$HARNESS_TURNS"
    fi
    output "$GITHUB_OUTPUT" status "$status"
}

report() {
    local status=0 changes="$RUNNER_TEMP/changes.md" site="$RUNNER_TEMP/site"
    harness history "$HARNESS_HISTORY" --changes --format markdown --out "$changes" || status=$?
    # 1: the compiler made something slower; 3: a case fails that did not before.
    [ "$status" -eq 0 ] || [ "$status" -eq 1 ] || [ "$status" -eq 3 ] || exit "$status"
    cat "$changes" >>"$GITHUB_STEP_SUMMARY"
    harness dashboard "$HARNESS_HISTORY" --out "$site"
    output "$GITHUB_OUTPUT" changes "$changes"
    output "$GITHUB_OUTPUT" changed "$([ "$status" -ne 0 ] && echo true || echo false)"
    output "$GITHUB_OUTPUT" site "$site"
}

case ${1:-} in
measure) measure ;;
report) report ;;
*)
    echo "usage: nightly.sh measure|report" >&2
    exit 2
    ;;
esac
