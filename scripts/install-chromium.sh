#!/bin/sh
# Install Debian's Chromium if there is none and this user may install packages; the dashboard's tests look at its pages.
# usage: install-chromium.sh; never fails, since the tests that need a browser are skipped without one.
set -u
# shellcheck source=scripts/apt.sh
. "$(dirname "$0")/apt.sh"
for name in chromium chromium-browser google-chrome-stable google-chrome; do
    if command -v "$name" >/dev/null 2>&1; then
        exit 0
    fi
done
apt_install "a browser for the dashboard's tests" "No Chromium here" "the tests that need a browser will be skipped" \
    chromium
exit 0
