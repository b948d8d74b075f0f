# shellcheck shell=sh
# How the scripts beside this one install Debian's packages; they read it in, and none of it ever fails.

# apt_install WHAT MISSING WITHOUT PACKAGES: install WHAT if this user may.
#   MISSING says what is not here, WITHOUT what happens without it; PACKAGES are their names, one word each.
apt_install() {
    what=$1 missing=$2 without=$3
    shift 3
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "$missing; install $what with your package manager." >&2
        return
    fi
    if [ "$(id -u)" = 0 ]; then
        sudo=
    elif sudo -n true 2>/dev/null; then
        sudo=sudo
    else
        echo "$missing; get $what with: sudo apt-get install $*" >&2
        return
    fi
    echo "Installing $what ($*)" >&2
    log=$(mktemp)
    if $sudo apt-get update >"$log" 2>&1 &&
        $sudo env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$@" >>"$log" 2>&1; then
        rm -f "$log"
    else
        tail -n 3 "$log" >&2
        echo "Could not install $what (whole log: $log); $without." >&2
    fi
}
