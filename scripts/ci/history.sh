#!/usr/bin/env bash
# The history between nights: a results folder on a branch of its own, or at a URL that fsspec reads and writes.
# usage: history.sh restore|push
#   HARNESS_HISTORY_URL       where it is, as in s3://bucket/results; else the branch below has it
#   HARNESS_HISTORY_BRANCH    (default: harness-history)
#   GITHUB_TOKEN, GITHUB_SERVER_URL, GITHUB_REPOSITORY, GITHUB_ENV, RUNNER_TEMP    as GitHub sets them
# restore sets HARNESS_HISTORY for the steps that follow: the URL, or a folder here.
set -euo pipefail

# shellcheck source=scripts/ci/output.sh
. "$(dirname "${BASH_SOURCE[0]}")/output.sh"

branch=${HARNESS_HISTORY_BRANCH:-harness-history}
remote="$GITHUB_SERVER_URL/$GITHUB_REPOSITORY"

# The token goes to git in the environment: neither in an address nor in a command line, where others could read it.
if [ -n "${GITHUB_TOKEN:-}" ]; then
    export GIT_CONFIG_COUNT=1
    export GIT_CONFIG_KEY_0="http.$GITHUB_SERVER_URL/.extraheader"
    GIT_CONFIG_VALUE_0="Authorization: Basic $(printf 'x-access-token:%s' "$GITHUB_TOKEN" | base64 | tr -d '\n')"
    export GIT_CONFIG_VALUE_0
fi

restore() {
    local place=${HARNESS_HISTORY_URL:-}
    if [ -z "$place" ]; then
        fetch_into "$RUNNER_TEMP/history"
        place="$RUNNER_TEMP/history/results"
        mkdir -p "$place"
    fi
    output "$GITHUB_ENV" HARNESS_HISTORY "$place"
}

# fetch_into FOLDER: the branch as it is now; a folder without commits where there is no such branch yet.
fetch_into() {
    git init --quiet "$1"
    if git -C "$1" ls-remote --exit-code --heads "$remote" "refs/heads/$branch" >/dev/null; then
        git -C "$1" fetch --quiet --depth 1 "$remote" "refs/heads/$branch"
        git -C "$1" checkout --quiet --detach FETCH_HEAD
    elif [ "$?" -ne 2 ]; then # 2 says that the remote answered and has no such branch
        echo "The history cannot be fetched from $remote; check the network and that the job may read contents." >&2
        exit 2
    fi
}

push() {
    [ -z "${HARNESS_HISTORY_URL:-}" ] || return 0 # merging into it was enough
    local attempt folder="$RUNNER_TEMP/history" newer
    for attempt in 1 2 3; do
        git -C "$folder" add --all -- . ':(exclude)*.lock'
        git -C "$folder" -c user.name=iree-harness -c user.email=iree-harness@users.noreply.github.com \
            commit --quiet --allow-empty --message "Runs of $(date -u +%Y-%m-%d)"
        if git -C "$folder" push --quiet "$remote" "HEAD:refs/heads/$branch"; then
            return 0
        fi
        echo "Branch $branch has moved on meanwhile, or cannot be written; merging with what is there" >&2
        newer="$RUNNER_TEMP/history-$attempt"
        fetch_into "$newer"
        mkdir -p "$newer/results"
        harness results merge "$folder/results" --into "$newer/results"
        folder=$newer
    done
    echo "Branch $branch cannot be written; give the job permissions: contents: write. The runs are in $folder." >&2
    exit 2
}

case ${1:-} in
restore) restore ;;
push) push ;;
*)
    echo "usage: history.sh restore|push" >&2
    exit 2
    ;;
esac
