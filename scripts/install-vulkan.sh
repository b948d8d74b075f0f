#!/bin/sh
# Install Mesa's software Vulkan driver if IREE finds no Vulkan device and this user may install packages.
# usage: install-vulkan.sh FOLDER_OF_IREE_RUNTIME_TOOLS; never fails, since Vulkan is optional.
set -u
if "$1/iree-run-module" --list_devices=vulkan 2>/dev/null | grep -q '^vulkan'; then
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "No Vulkan device here; a software driver will do (Mesa's lavapipe), install it with your package manager." >&2
    exit 0
fi
if [ "$(id -u)" = 0 ]; then
    sudo=
elif sudo -n true 2>/dev/null; then
    sudo=sudo
else
    echo "No Vulkan device here; get one with: sudo apt-get install mesa-vulkan-drivers libvulkan1" >&2
    exit 0
fi
echo "Installing a software Vulkan driver (mesa-vulkan-drivers)" >&2
log=$(mktemp)
if $sudo apt-get update >"$log" 2>&1 &&
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        mesa-vulkan-drivers libvulkan1 >>"$log" 2>&1; then
    rm -f "$log"
else
    tail -n 3 "$log" >&2
    echo "Could not install a Vulkan driver (whole log: $log); the Vulkan cases will be skipped." >&2
fi
exit 0
