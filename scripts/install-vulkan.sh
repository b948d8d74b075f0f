#!/bin/sh
# Install Mesa's software Vulkan driver if IREE finds no Vulkan device and this user may install packages.
# usage: install-vulkan.sh FOLDER_OF_IREE_RUNTIME_TOOLS; never fails, since Vulkan is optional.
set -u
# shellcheck source=scripts/apt.sh
. "$(dirname "$0")/apt.sh"
if "$1/iree-run-module" --list_devices=vulkan 2>/dev/null | grep -q '^vulkan'; then
    exit 0
fi
apt_install "a software Vulkan driver" "No Vulkan device here" "the Vulkan cases will be skipped" \
    mesa-vulkan-drivers libvulkan1
exit 0
