#!/bin/sh
# Install Debian's Chromium if there is none and this user may install packages; the dashboard's tests look at its pages.
# usage: install-chromium.sh; never fails, since the tests that need a browser are skipped without one.
set -u
for name in chromium chromium-browser google-chrome-stable google-chrome; do
    if command -v "$name" >/dev/null 2>&1; then
        exit 0
    fi
done
if ! command -v apt-get >/dev/null 2>&1; then
    echo "No Chromium here; install it with your package manager to test the dashboard in a browser." >&2
    exit 0
fi
if [ "$(id -u)" = 0 ]; then
    sudo=
elif sudo -n true 2>/dev/null; then
    sudo=sudo
else
    echo "No Chromium here; get one with: sudo apt-get install chromium" >&2
    exit 0
fi
echo "Installing a browser for the dashboard's tests (chromium)" >&2
log=$(mktemp)
if $sudo apt-get update >"$log" 2>&1 &&
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends chromium >>"$log" 2>&1; then
    rm -f "$log"
else
    tail -n 3 "$log" >&2
    echo "Could not install Chromium (whole log: $log); the tests that need a browser will be skipped." >&2
fi
exit 0
