#!/usr/bin/env bash
# Tests a release, as root: its tarball in bare root filesystems (Debian 12, Ubuntu 24.04 by debootstrap, Alpine's
# minirootfs, or busybox alone where Alpine's server cannot be reached), its documents, packages, repositories and image, the program for
# aarch64 under qemu-user, and a second build in another directory, which gives the same bytes. A part whose tools
# or server are missing is skipped, by name.
#
#   test-release.sh [DIR]     DIR: of release.sh (dist)
set -euo pipefail
cd "$(dirname "$0")/.."
dist=$(realpath "${1:-dist}")
ubuntu=${UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}
alpine=${ALPINE_MINIROOTFS:-https://dl-cdn.alpinelinux.org/alpine/v3.20/releases/x86_64/alpine-minirootfs-3.20.3-x86_64.tar.gz}
work=$(mktemp -d)
results=()
failed=0
mounted=()
cleanup() {
	for at in ${mounted[@]+"${mounted[@]}"}; do umount -l "$at"; done
	rm -rf --one-file-system "$work"
}
trap cleanup EXIT
have() { command -v "$1" >/dev/null; }
result() { # result PART RESULT
	echo "test-release: $1: $2"
	results+=("$1: $2")
	[[ $2 != FAILED* ]] || failed=1
}
check() { # check PART COMMAND...
	local part=$1
	shift
	if "$@"; then result "$part" passed; else result "$part" FAILED; fi
}
(cd "$dist" && sha256sum -c SHA256SUMS)
arch=$(uname -m)
tarball=$(echo "$dist"/tr-*-"$arch"-linux.tar.gz)

# first_use ROOT PROGRAM: what a user does first, in a root filesystem. The shell of busybox runs its own tr whatever
# PATH says.
first_use() {
	chroot "$1" /bin/sh -c '
		set -e
		export PATH=/usr/local/bin:/usr/bin:/bin
		cd /tmp
		tr=$1
		$tr --version
		$tr record --method bpf -o t.bin -- sh -c "sleep 0.2; true; exit 3" || [ $? = 3 ]
		$tr record --method ptrace -o ptrace.bin -- sh -c "sleep 0.2; true"
		$tr verify ptrace.bin
		$tr verify t.bin
		$tr summary t.bin
		$tr report t.bin -o t.html
		case $tr in
		*/tr) [ "$(echo abc | $tr a-c A-C)" = ABC ] ;;
		*) ! echo abc | $tr a-c A-C ;;
		esac
	' sh "$2"
}

try() { # try NAME ROOT
	local name=$1 root=$2
	mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/usr/local"
	for at in proc sys dev; do
		mount --rbind --make-rslave "/$at" "$root/$at"
		mounted+=("$root/$at")
	done
	tar -xzf "$tarball" -C "$root/usr/local" --strip-components=1
	check "$name" first_use "$root" /usr/local/bin/tr
}

bare() { # bare NAME SUITE MIRROR [SCRIPT]
	local root=$work/$1
	if ! have debootstrap; then
		result "$1" "skipped: debootstrap is not installed"
	elif debootstrap --no-check-gpg --variant=minbase "$2" "$root" ${3:+"$3"} ${4:+"$4"} >"$work/$1.log" 2>&1; then
		try "$1" "$root"
	else
		result "$1" "skipped: $(tail -n 1 "$work/$1.log")"
	fi
}

small() {
	local busybox
	mkdir -p "$work/alpine" "$work/busybox/bin"
	if curl -fsSL -m 120 -o "$work/alpine.tar.gz" "$alpine" 2>"$work/alpine.log"; then
		tar -xzf "$work/alpine.tar.gz" -C "$work/alpine"
		try alpine "$work/alpine"
		return
	fi
	result alpine "skipped: $(tail -n 1 "$work/alpine.log")"
	if busybox=$(command -v busybox) && ! readelf -lW "$busybox" | grep -q INTERP; then
		cp "$busybox" "$work/busybox/bin/busybox"
		for applet in sh sleep true tr; do ln -s busybox "$work/busybox/bin/$applet"; done
		try busybox "$work/busybox"
	else
		result busybox "skipped: no static busybox is installed"
	fi
}

# Both packages go into the Debian root filesystem, one after the other. They have no file in /usr/local, and an
# administrator's changes outlive an upgrade.
packaged() { # packaged INSTALL REMOVE
	local tr=/usr/bin/tr-trace link=$root/usr/local/bin/tr
	rm -f "$root"/usr/local/bin/tr{,-trace}
	$1 && first_use "$root" $tr || return 1
	ln -s $tr "$link"
	first_use "$root" /usr/local/bin/tr && chmod 750 "$root$tr" && $1 && [ "$(stat -c %a "$root$tr")" = 750 ] &&
		$2 && ! [ -e "$root$tr" ] && ! [ -L "$link" ] && [ -d "$root/usr/local/bin" ] && [ -x "$root/usr/bin/tr" ]
}
debian_package() {
	install() { chroot "$root" dpkg -i /tmp/tr.deb; }
	remove() { chroot "$root" dpkg -r tr-where-time; }
	! dpkg-deb -c "$deb" | grep -q /usr/local && cp "$deb" "$root/tmp/tr.deb" && packaged install remove
}
rpm_package() {
	install() { rpm --root "$root" --nodeps --replacepkgs -U "$rpm"; }
	remove() { rpm --root "$root" --nodeps -e tr-where-time; }
	rpm -qlp "$rpm" | grep -x /usr/bin/tr-trace && ! rpm -qlp "$rpm" | grep /usr/local && packaged install remove
}

# The repositories, signed by a key of their own: apt-get and dnf take them by it, and not if a list was changed.
signed() {
	cp "$dist"/*.deb "$dist"/*.rpm "$1" && export GNUPGHOME=$1/gnupg && mkdir -m 700 "$GNUPGHOME" &&
		gpg --batch --quiet --passphrase '' --quick-gen-key "test of tr" ed25519 sign 1d &&
		SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) GPG_KEY="test of tr" scripts/repositories.sh "$1"
}
apt_repository() {
	local list=$root/srv/apt/dists/stable/main
	mkdir -p "$root/srv" && cp -r "$1/apt" "$root/srv"
	echo "deb [signed-by=/srv/apt/tr.asc] file:/srv/apt stable main" >"$root/etc/apt/sources.list.d/tr.list"
	update() {
		chroot "$root" apt-get update -q --error-on=any -o Dir::Etc::sourceparts=- -o Dir::Etc::sourcelist=sources.list.d/tr.list
	}
	update && chroot "$root" apt-get install -qq -y tr-where-time && chroot "$root" /usr/bin/tr-trace --version &&
		chroot "$root" apt-get remove -qq -y tr-where-time && ! [ -e "$root/usr/bin/tr-trace" ] || return 1
	rm -rf "$root"/var/lib/apt/lists/*
	for file in "$list"/*/Packages*; do printf '\n' >>"$file"; done
	! update
}
rpm_repository() {
	query() {
		rm -rf "$work/dnf"
		dnf -q --installroot "$work/dnf" --releasever 1 --disablerepo '*' --repofrompath "tr,file://$1/rpm" \
			--setopt tr.skip_if_unavailable=0 --setopt tr.repo_gpgcheck=1 --setopt "tr.gpgkey=file://$1/rpm/tr.asc" -y repoquery --arch "$arch" tr-where-time
	}
	query "$1" | grep "^tr-where-time-.*$arch" || return 1
	echo >>"$1/rpm/repodata/repomd.xml"
	! query "$1"
}

# The image, with storage of its own; it holds nothing but tr, which reads a recording from standard input.
image() {
	local container buildah=(buildah --root "$work/image" --runroot "$work/image-run" --storage-driver vfs)
	mkdir "$work/context"
	tar -xzf "$tarball" --strip-components=1 -C "$work/context"
	sed -n 's/^    \(FROM\|COPY\|ENTRYPOINT\)/\1/p' docs/other-ci.md >"$work/Containerfile"
	"${buildah[@]}" bud -q --isolation chroot -f "$work/Containerfile" -t tr "$work/context" &&
		container=$("${buildah[@]}" from tr) &&
		"${buildah[@]}" run --isolation chroot "$container" -- /usr/local/bin/tr-trace summary - \
			<fixtures/traces/demo.bin >"$work/summary" && cmp "$work/summary" <("$native" summary - <fixtures/traces/demo.bin)
}

# The program for aarch64 says the same about a recording, byte for byte.
aarch64() {
	local emulated
	tar -xzf "$dist"/tr-*-aarch64-linux.tar.gz -C "$work"
	emulated=$(echo "$work"/tr-*-aarch64-linux/bin/tr)
	for trace in fixtures/traces/{demo,build,linux-6.12-all}.bin; do
		for report in "analyze --format json" "analyze --report critical-path" verify; do
			# shellcheck disable=SC2086 # words
			cmp <(qemu-aarch64-static "$emulated" $report "$trace") <("$native" $report "$trace") || return 1
		done
	done
}

# The released program keeps COMMAND in a panic: by unwinding or not, its profile differs from that of the tests.
panic() { TR_PROGRAM=$native scripts/cargo.sh test --locked --test recorder -- a_panic_of_the_recorder; }

# Each link of the packaged pages leads to a packaged file.
documents() {
	local page link
	for page in "$work"/native/share/doc/tr/{,docs/,docs/tasks/}*.md; do
		for link in $(grep -oE '(\]\(|src(set)?=")[^)"#]+' "$page" | sed -E 's/^(\]\(|src(set)?=")//' | grep -v ://); do
			[ -e "${page%/*}/$link" ] || { echo "$page: $link is not there" && return 1; }
		done
	done
}

bare debian-12 bookworm "${DEBIAN_MIRROR-}"
bare ubuntu-24.04 noble "$ubuntu" /usr/share/debootstrap/scripts/gutsy
small

mkdir "$work/native"
tar -xzf "$tarball" --strip-components=1 -C "$work/native"
native=$work/native/bin/tr
check "documents" documents
root=$work/debian-12
deb=$(echo "$dist"/*_"$(dpkg --print-architecture 2>/dev/null || true)".deb)
rpm=$(echo "$dist"/*."$arch".rpm)
if ! [ -f "$deb" ] || ! [ -d "$root/etc" ]; then
	result "Debian package" "skipped: no package, or no root filesystem of Debian"
else
	check "Debian package" debian_package
fi
if ! [ -f "$rpm" ] || ! [ -d "$root/etc" ]; then
	result RPM "skipped: no package, or no root filesystem of Debian"
else
	check RPM rpm_package
fi
mkdir "$work/signed"
if ! have gpg || ! have apt-ftparchive || ! have createrepo_c || ! [ -f "$deb" ] || ! [ -f "$rpm" ]; then
	result repositories "skipped: a package, gpg, apt-ftparchive or createrepo_c is missing"
else
	check "signed repositories" signed "$work/signed"
	if [ -d "$root/etc" ]; then check "apt-get from the repository" apt_repository "$work/signed"; fi
	if have dnf; then check "dnf from the repository" rpm_repository "$work/signed"; fi
fi
check "a panic of the recorder" panic
if have buildah; then check image image; else result image "skipped: buildah is not installed"; fi
if ! ls "$dist"/*-aarch64-linux.tar.gz >/dev/null 2>&1 || [ "$arch" = aarch64 ]; then
	result aarch64 "skipped: no release for another architecture"
elif ! have qemu-aarch64-static; then
	result aarch64 "skipped: qemu-user-static is not installed"
else
	check "aarch64, reading (qemu-user has neither BPF nor ptrace)" aarch64
fi

echo "test-release: building once more, in another directory"
git clone -q . "$work/again"
# With the packages of earlier releases.
mkdir "$work/dist"
for part in apt rpm; do [ ! -d "$dist/$part" ] || cp -a "$dist/$part" "$work/dist"; done
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) CARGO_TARGET_DIR=$work/again-target ALLOW_PARTIAL=1 GPG_KEY='' MINISIGN_KEY='' \
	"$work/again/scripts/release.sh" "$work/dist" >/dev/null
equal() {
	local part options=(-x '*.asc' -x '*.gpg' -x InRelease)
	for part in SHA256SUMS apt rpm; do
		[ ! -e "$dist/$part" ] || diff -r "${options[@]}" "$dist/$part" "$work/dist/$part" || return 1
	done
}
check "two builds are equal" equal
printf '%s\n' "" "${results[@]}"
exit "$failed"
