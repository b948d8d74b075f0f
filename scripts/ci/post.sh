#!/usr/bin/env bash
# Post what an untrusted job measured as comments of its pull request; post/action.yml runs this.
# Only figures are read from the artifact: the comment's text is made here, and the number of the pull request comes
# from GitHub's event.
#   HARNESS_ARTIFACTS    folder of the artifacts
#   HARNESS_IMAGES_BRANCH, HARNESS_IMAGES_URL, HARNESS_DASHBOARD_URL    options of harness github post
#   HARNESS_DRY_RUN      true: print instead
#   GITHUB_TOKEN, GITHUB_EVENT_PATH, GITHUB_REPOSITORY, GITHUB_API_URL, RUNNER_TEMP    as GitHub sets them
# Status 2: a comment could not be posted.
set -euo pipefail

# One pull request gets a comment a suite; more suites than this are somebody's mischief.
most=12

options=(--event "$GITHUB_EVENT_PATH")
[ -z "${HARNESS_IMAGES_BRANCH:-}" ] || options+=(--images-branch "$HARNESS_IMAGES_BRANCH")
[ -z "${HARNESS_IMAGES_URL:-}" ] || options+=(--images-url "$HARNESS_IMAGES_URL")
[ -z "${HARNESS_DASHBOARD_URL:-}" ] || options+=(--dashboard-url "$HARNESS_DASHBOARD_URL")
[ "${HARNESS_DRY_RUN:-}" != true ] || options+=(--dry-run)

mkdir -p "$HARNESS_ARTIFACTS" # where there was none to take, it is not there
status=0
number=0
while IFS= read -r -d '' folder; do
    number=$((number + 1))
    if [ "$number" -gt "$most" ]; then
        echo "There are more than $most reports in the artifacts; the others are not posted." >&2
        status=2
        break
    fi
    harness github post "$folder" "${options[@]}" --keep "$RUNNER_TEMP/comment-$number.md" || status=2
done < <(find -P "$HARNESS_ARTIFACTS" -mindepth 1 -maxdepth 2 -type f \
    \( -name comparison.json -o -name run.json \) -printf '%h\0' | sort -zu)
if [ "$number" -eq 0 ]; then
    echo "No artifact holds a comparison: the job that measures ended before it had one; its log says why." >&2
fi
exit "$status"
