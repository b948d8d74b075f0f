# What a step tells the runner; measure.sh, nightly.sh and history.sh read this file in.
# shellcheck shell=bash

# output FILE NAME VALUE: one value in GITHUB_OUTPUT or GITHUB_ENV. The delimiter is random, so that a value with
# newlines stays one value, whoever chose it.
output() {
    local delimiter
    delimiter="harness-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"
    printf '%s<<%s\n%s\n%s\n' "$2" "$delimiter" "$3" "$delimiter" >>"$1"
}
