#!/usr/bin/env bash
# Installs what building and testing need and the machine lacks. Debian 12 and
# Ubuntu 24.04, by apt-get, through sudo when not root. Does nothing, fast, when
# nothing is missing. `setup.sh kernels` is for scripts/test-kernels.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v cargo >/dev/null; then
	echo "setup: no Rust toolchain: install cargo and rustc 1.88 or newer (rustup)" >&2
	exit 1
fi

missing=()
want() { # want PACKAGE COMMAND...: the package unless the command succeeds
	local package=$1
	shift
	"$@" >/dev/null 2>&1 || missing+=("$package")
}
want clang command -v clang
want gcc command -v gcc
want g++ command -v g++
want libc6-dev test -e /usr/include/stdio.h
want make command -v make
want pkg-config command -v pkg-config
want libelf-dev test -e /usr/include/libelf.h
want zlib1g-dev test -e /usr/include/zlib.h
want strace command -v strace
want procps command -v ps
want libcap2-bin command -v setcap
want stress-ng command -v stress-ng
want python3 command -v python3
# Another python3 may be the first, which does not have it.
want python3-zstandard sh -c 'for python in python3 /usr/bin/python3; do $python -c "import zstandard" && exit; done; exit 1'
# The page of `tr report` is looked at in a browser. Ubuntu has Chromium only as
# a snap, which containers cannot install: there these tests are skipped.
want nodejs command -v node
want npm command -v npm
if grep -qs '^ID=debian' /etc/os-release; then
	want chromium command -v chromium
	want fonts-dejavu-core test -e /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf
fi

# What the page's sources are checked, bundled and tested with. Building tr needs
# none of it, so without a network the rest goes on.
packages() {
	local web=crates/report/web
	if ! command -v npm >/dev/null || [ $web/node_modules/.package-lock.json -nt $web/package-lock.json ]; then
		return
	fi
	echo "setup: installing the Node packages of $web"
	npm ci --silent --prefix $web || echo "setup: npm ci failed: the page's tests are skipped" >&2
}
if [ "${1-}" = kernels ]; then
	want qemu-system-x86 command -v qemu-system-x86_64
	want busybox-static command -v busybox
fi

if [ ${#missing[@]} -eq 0 ]; then
	packages
	exit 0
fi
if ! command -v apt-get >/dev/null; then
	echo "setup: missing here (as Debian names it): ${missing[*]}; install them and try again" >&2
	exit 1
fi
sudo=()
if [ "$(id -u)" -ne 0 ]; then
	sudo=(sudo)
	command -v sudo >/dev/null || {
		echo "setup: missing: ${missing[*]}; install them as root and try again" >&2
		exit 1
	}
fi
echo "setup: installing ${missing[*]}"
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
packages
