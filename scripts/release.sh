#!/usr/bin/env bash
# Builds a release for this machine's architecture into DIR (dist): the static tr in a tarball with manual
# pages, completions, licences and an SPDX list of its parts, a Debian package, an RPM where rpmbuild is
# installed, and SHA256SUMS. The same sources and toolchain give the same bytes in any directory.
#
#   release.sh [DIR]
set -euo pipefail
cd "$(dirname "$0")/.."
dist=$(realpath -m "${1:-dist}")
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
arch=$(uname -m)
name=tr-$version-$arch-linux
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH=$epoch

# The paths of this machine are in no part of the binary.
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
cargo_home=${CARGO_HOME:-$HOME/.cargo}
export RUSTFLAGS="--remap-path-prefix=$PWD=. --remap-path-prefix=$target=target --remap-path-prefix=$cargo_home=cargo"
export CFLAGS="-ffile-prefix-map=$target=target -ffile-prefix-map=$cargo_home=cargo"
scripts/build.sh
tr=$target/release/tr
if readelf -lW "$tr" | grep -q INTERP; then
	echo "release: $tr is not static: make setup installs the static libraries" >&2
	exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/$name
mkdir -p "$dist" "$root/share/doc/tr"
PREFIX=/ DESTDIR=$root scripts/install.sh "$tr" >/dev/null
cp LICENSE-APACHE LICENSE-MIT LICENSES/*.txt README.md CHANGELOG.md SECURITY.md "$root/share/doc/tr"
scripts/cargo.sh metadata --locked --format-version 1 --filter-platform "$arch-unknown-linux-gnu" |
	scripts/sbom.py "$version" "$epoch" "glibc=$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)=LGPL-2.1-or-later" \
		"libelf=$(pkg-config --modversion libelf)=GPL-2.0-or-later OR LGPL-3.0-or-later" \
		"zlib=$(pkg-config --modversion zlib)=Zlib" >"$root/share/doc/tr/tr.spdx.json"
chmod -R u=rwX,go=rX "$root"

# One owner, one time and one order.
tar --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner -C "$work" -cf - "$name" |
	gzip -9n >"$dist/$name.tar.gz"
cp "$root/share/doc/tr/tr.spdx.json" "$dist/$name.spdx.json"
files=("$name.tar.gz" "$name.spdx.json")

# Into /usr/local: /usr/bin/tr is the system's, to which ours passes other uses on.
if command -v dpkg-deb >/dev/null; then
	deb=$work/deb
	mkdir -p "$deb/DEBIAN" "$deb/usr"
	cp -r "$root" "$deb/usr/local"
	debarch=$(dpkg --print-architecture)
	cat >"$deb/DEBIAN/control" <<-END
		Package: tr-where-time
		Version: $version
		Architecture: $debarch
		Maintainer: the developers of tr
		Suggests: libcap2-bin
		Section: devel
		Priority: optional
		Installed-Size: $(du -sk --apparent-size "$deb/usr" | cut -f1)
		Description: Where did the time go? Records a build or test run and reads it back
		 Records the scheduler and process events of a command with eBPF, or with ptrace where
		 BPF is not allowed, and says for every process how long it ran, waited or slept.
	END
	cat >"$deb/DEBIAN/postinst" <<-'END'
		#!/bin/sh
		echo "tr records scheduling events as root. To let the members of a group record every process:"
		echo "    groupadd --system tr-trace; chown root:tr-trace /usr/local/bin/tr; chmod 750 /usr/local/bin/tr"
		echo "    setcap cap_bpf,cap_perfmon+ep /usr/local/bin/tr"
	END
	chmod 755 "$deb/DEBIAN/postinst"
	dpkg-deb --root-owner-group -Zgzip --build "$deb" "$dist/tr-where-time_${version}_$debarch.deb" >/dev/null
	files+=("tr-where-time_${version}_$debarch.deb")
else
	echo "release: no Debian package: dpkg-deb is not installed"
fi
if command -v rpmbuild >/dev/null; then
	cat >"$work/tr.spec" <<-END
		Name: tr-where-time
		Version: $version
		Release: 1
		Summary: Where did the time go? Records a build or test run and reads it back
		License: (MIT OR Apache-2.0) AND (GPL-2.0-only OR BSD-2-Clause)
		%description
		Records the scheduler and process events of a command with eBPF or ptrace.
		%install
		mkdir -p %{buildroot}/usr
		cp -r $root %{buildroot}/usr/local
		%files
		/usr/local
	END
	rpmbuild -bb --quiet --define "_topdir $work/rpm" --define "clamp_mtime_to_source_date_epoch 1" \
		--define "use_source_date_epoch_as_buildtime 1" --define "_buildhost localhost" "$work/tr.spec"
	cp "$work"/rpm/RPMS/*/*.rpm "$dist"
	files+=("$(basename "$work"/rpm/RPMS/*/*.rpm)")
else
	echo "release: no RPM: rpmbuild is not installed"
fi
(cd "$dist" && sha256sum "${files[@]}" >SHA256SUMS && cat SHA256SUMS)
echo "release: tr is $(stat -c %s "$tr") bytes; $dist"
