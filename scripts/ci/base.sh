# Which commit a change is compared with; measure.sh reads this file in.
# shellcheck shell=bash

note() {
    printf '%s\n' "$1" >&2
}

fail() {
    note "$1"
    exit 2
}

# base_commit: the commit; or a sentence, and status 1, where there is none.
base_commit() {
    if [ -n "${HARNESS_BASE:-}" ]; then
        commit_named "$HARNESS_BASE" || commit_fetched "$HARNESS_BASE" || {
            echo "$HARNESS_BASE names no commit here"
            return 1
        }
    elif [ -n "${GITHUB_BASE_REF:-}" ]; then
        merge_base "$GITHUB_BASE_REF"
    else
        commit_named 'HEAD^1' || {
            echo "HEAD has no parent here; give actions/checkout fetch-depth: 0"
            return 1
        }
    fi
}

commit_named() {
    # After --end-of-options, git echoes that too, before the commit.
    git rev-parse --verify --quiet --end-of-options "$1^{commit}" | tail -n 1
}

commit_fetched() {
    git fetch --quiet --no-tags -- origin "$1" >&2 && commit_named FETCH_HEAD
}

# merge_base BRANCH: where HEAD left it. Of the merge that GitHub checks out for a pull request, the branch itself.
merge_base() {
    local tip
    git fetch --quiet --no-tags origin "+refs/heads/$1:refs/harness/base" >&2 ||
        note "origin cannot be fetched; what is here is taken"
    tip=$(commit_named refs/harness/base || commit_named "refs/remotes/origin/$1" || commit_named "refs/heads/$1") || {
        echo "branch $1 is not here; give actions/checkout fetch-depth: 0"
        return 1
    }
    if ! git merge-base HEAD "$tip"; then
        if [ "$(git rev-parse --is-shallow-repository)" = true ]; then
            git fetch --quiet --no-tags --unshallow origin >&2 || true
            git merge-base HEAD "$tip" && return
        fi
        echo "HEAD and $1 have no commit in common here; give actions/checkout fetch-depth: 0"
        return 1
    fi
}
