#!/usr/bin/env bash
# Tests a release, as root: its tarball in bare root filesystems (Debian 12, Ubuntu 24.04 by debootstrap, and one
# with busybox alone, as in Alpine), its Debian package, and a second build in another directory, which gives
# the same bytes. A filesystem that cannot be made here is skipped.
#
#   test-release.sh [DIR]     DIR: of release.sh (dist)
set -euo pipefail
cd "$(dirname "$0")/.."
dist=$(realpath "${1:-dist}")
work=$(mktemp -d)
failed=0
mounted=()
cleanup() {
	for at in ${mounted[@]+"${mounted[@]}"}; do umount -l "$at"; done
	rm -rf --one-file-system "$work"
}
trap cleanup EXIT
(cd "$dist" && sha256sum -c SHA256SUMS)
tarball=$(echo "$dist"/tr-*-linux.tar.gz)

# try NAME ROOT: records and reads in this root filesystem.
try() {
	local name=$1 root=$2
	mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/tmp"
	for at in proc sys dev; do
		mount --rbind --make-rslave "/$at" "$root/$at"
		mounted+=("$root/$at")
	done
	mkdir -p "$root/usr/local"
	tar -xzf "$tarball" -C "$root/usr/local" --strip-components=1
	# What a user does first.
	if chroot "$root" /bin/sh -c '
		set -e
		export PATH=/usr/local/bin:/usr/bin:/bin
		cd /tmp
		# The shell of busybox runs its own tr whatever PATH says.
		tr=/usr/local/bin/tr
		$tr --version
		$tr record --method bpf -o t.bin -- sh -c "sleep 0.2; true; exit 3" || [ $? = 3 ]
		$tr verify t.bin
		$tr summary t.bin
		$tr report t.bin -o t.html
		[ "$(echo abc | $tr a-c A-C)" = ABC ]
	'; then
		echo "test-release: $name: passed"
	else
		echo "test-release: $name: FAILED"
		failed=1
	fi
}

bare() { # bare NAME SUITE MIRROR SCRIPT
	local root=$work/$1
	if ! command -v debootstrap >/dev/null; then
		echo "test-release: $1: skipped: debootstrap is not installed"
	elif debootstrap --no-check-gpg --variant=minbase "$2" "$root" ${3:+"$3"} ${4:+"$4"} >"$work/$1.log" 2>&1; then
		try "$1" "$root"
	else
		echo "test-release: $1: skipped: $(tail -n 1 "$work/$1.log")"
	fi
}

bare debian-12 bookworm "${DEBIAN_MIRROR-}"
if [ -n "${UBUNTU_MIRROR-}" ]; then
	bare ubuntu-24.04 noble "$UBUNTU_MIRROR" /usr/share/debootstrap/scripts/gutsy
else
	echo "test-release: ubuntu-24.04: skipped: UBUNTU_MIRROR does not name a mirror"
fi
if busybox=$(command -v busybox) && ! readelf -lW "$busybox" | grep -q INTERP; then
	mkdir -p "$work/busybox/bin"
	cp "$busybox" "$work/busybox/bin/busybox"
	for applet in sh sleep true tr; do ln -s busybox "$work/busybox/bin/$applet"; done
	try busybox "$work/busybox"
else
	echo "test-release: busybox: skipped: no static busybox is installed"
fi

if deb=$(ls "$dist"/*.deb 2>/dev/null) && [ -d "$work/debian-12/etc" ]; then
	cp "$deb" "$work/debian-12/tmp/tr.deb"
	if chroot "$work/debian-12" sh -c 'rm -r /usr/local/bin/tr && dpkg -i /tmp/tr.deb && tr --version | grep "^tr " && dpkg -r tr-where-time'; then
		echo "test-release: Debian package: passed"
	else
		echo "test-release: Debian package: FAILED"
		failed=1
	fi
fi

echo "test-release: building once more, in another directory"
git clone -q . "$work/again"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) CARGO_TARGET_DIR=$work/again-target "$work/again/scripts/release.sh" "$work/dist" >/dev/null
if cmp "$dist/SHA256SUMS" "$work/dist/SHA256SUMS"; then
	echo "test-release: two builds: equal"
else
	echo "test-release: two builds: DIFFERENT"
	failed=1
fi
exit $failed
