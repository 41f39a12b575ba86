#!/usr/bin/env bash
# Builds a release into DIR (dist), for this machine's architecture and, on x86-64 with the packages of
# CONTRIBUTING.md, for aarch64: the static tr in a tarball with manual pages, completions, the book, licences and an
# SPDX list of its parts, a Debian package, an RPM, repositories of both, and SHA256SUMS; for this machine's architecture
# also the recorder alone. The same sources and toolchain give the same bytes in any directory.
#
# GPG_KEY signs the repositories (repositories.sh), MINISIGN_KEY, a file with a secret key, SHA256SUMS.
#
# A part that this machine cannot make is an error; with ALLOW_PARTIAL=1 it is left out, and said to be.
#
#   release.sh [DIR]
set -euo pipefail
cd "$(dirname "$0")/.."
dist=$(realpath -m "${1:-dist}")
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
summary="Where did the time go? Records a build or test run and reads it back"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$dist"
files=()

# The paths of this machine are in no part of the binary.
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
cargo_home=${CARGO_HOME:-$HOME/.cargo}
export RUSTFLAGS="--remap-path-prefix=$PWD=. --remap-path-prefix=$target=target --remap-path-prefix=$cargo_home=cargo"
export CFLAGS="-ffile-prefix-map=$target=target -ffile-prefix-map=$cargo_home=cargo"

# parts ARCH: the SPDX list. The system's libraries have the versions of the packages that were linked.
parts() {
	local multiarch=$1-linux-gnu
	version_of() { PKG_CONFIG_LIBDIR=/usr/lib/$multiarch/pkgconfig pkg-config --modversion "$1"; }
	scripts/cargo.sh metadata --locked --format-version 1 --filter-platform "$1-unknown-linux-gnu" |
		scripts/sbom.py "$version" "$SOURCE_DATE_EPOCH" \
			"glibc=$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)=LGPL-2.1-or-later" \
			"libelf=$(version_of libelf)=GPL-2.0-or-later OR LGPL-3.0-or-later" "zlib=$(version_of zlib)=Zlib"
}

# book DOC: the pages for users, with their pictures. Their links to files that are not installed lead to the repository.
book() {
	local page up at
	at=$(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)/blob/v$version
	mkdir -p "$1/docs/tasks"
	cp docs/*.png "$1/docs"
	for page in README.md CHANGELOG.md SECURITY.md docs/*.md docs/tasks/*.md; do
		up=$(dirname "$page" | sed 's#^\.$##; s#^docs$#../#; s#^docs/tasks$#../../#')
		sed -E -e "s#\]\($up([a-zA-Z.])#](@\1#g" \
			-e "s#\]\(@([a-z]+://|docs/|(README|CHANGELOG|SECURITY)\.md)#](${up}\1#g" \
			-e "s#\]\(@#]($at/#g" -e "s#\]\(decisions/#]($at/docs/decisions/#g" "$page" >"$1/$page"
	done
}

# tree ARCH TR ROOT PREFIX NAME...: the installed files below ROOT, under these names. Pages and completions are texts
# of the native tr.
tree() {
	local name arch=$1 tr=$2 root=$3 prefix=$4 doc=$3$4/share/doc/${5/tr-trace/tr-where-time}
	shift 4
	if readelf -lW "$tr" | grep -q INTERP; then
		echo "release: $tr is not static: make setup installs the static libraries" >&2
		exit 1
	fi
	if readelf -SW "$tr" | grep -q '\.symtab'; then
		echo "release: $tr is not stripped" >&2
		exit 1
	fi
	mkdir -p "$doc"
	NAMES=$* PREFIX=$prefix/ DESTDIR=$root scripts/install.sh "$native" >/dev/null
	install -m 755 "$tr" "$root$prefix/bin/$1"
	for name in "${@:2}"; do ln -f "$root$prefix/bin/$1" "$root$prefix/bin/$name"; done
	cp LICENSES/*.txt "$doc"
	book "$doc"
	parts "$arch" >"$doc/tr.spdx.json"
	chmod -R u=rwX,go=rX "$root"
}

# tarball NAME ROOT: with one owner, one time and one order.
tarball() {
	tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "${2%/*}" -cf - "$1" |
		gzip -9n >"$dist/$1.tar.gz"
	cp "$2/share/doc/tr/tr.spdx.json" "$dist/$1.spdx.json"
	files+=("$1.tar.gz" "$1.spdx.json")
}

# debian ARCH ROOT: in /usr, where tr is the system's; this package has tr-trace alone.
debian() {
	local arch deb=$work/$1-deb file
	arch=${1/x86_64/amd64}
	arch=${arch/aarch64/arm64}
	file=tr-where-time_${version}_$arch.deb
	mkdir -p "$deb/DEBIAN"
	cp -r "$2/usr" "$deb"
	# Debian's zsh has another directory for packages.
	mv "$deb/usr/share/zsh/site-functions" "$deb/usr/share/zsh/vendor-completions"
	cat >"$deb/DEBIAN/control" <<-END
		Package: tr-where-time
		Version: $version
		Architecture: $arch
		Maintainer: the developers of tr
		Suggests: libcap2-bin
		Section: devel
		Priority: optional
		Installed-Size: $(du -sk --apparent-size "$deb/usr" | cut -f1)
		Description: $summary
		 Records the scheduler and process events of a command with eBPF, or with ptrace where
		 BPF is not allowed, and says for every process how long it ran, waited or slept.
	END
	install -m 755 scripts/package/before.sh "$deb/DEBIAN/preinst"
	install -m 755 scripts/package/after.sh "$deb/DEBIAN/postinst"
	install -m 755 scripts/package/removed.sh "$deb/DEBIAN/postrm"
	dpkg-deb --root-owner-group -Zgzip --build "$deb" "$dist/$file" >/dev/null
	files+=("$file")
}

# rpm ARCH ROOT: the files alone. The directories are the system's.
rpm() {
	local spec=$work/tr.spec rpm=$work/$1-rpm
	cat >"$spec" <<-END
		Name: tr-where-time
		Version: $version
		Release: 1
		Summary: $summary
		License: (MIT OR Apache-2.0) AND (GPL-2.0-only OR BSD-2-Clause)
		%description
		Records the scheduler and process events of a command with eBPF, or with ptrace where
		BPF is not allowed, and says for every process how long it ran, waited or slept.
		%install
		mkdir -p %{buildroot}
		cp -r $2/usr %{buildroot}
		%pre
		$(sed 's/%/%%/g' scripts/package/before.sh)
		%post
		$(sed 's/%/%%/g' scripts/package/after.sh)
		%postun
		$(sed 's/%/%%/g' scripts/package/removed.sh)
		%files
		$(cd "$2" && find . -type f | sort | sed 's|^\.||')
	END
	# The programs of the distribution would strip and compress by rules of its own.
	rpmbuild -bb --quiet --target "$1-linux" --define "_topdir $rpm" --define "__os_install_post %{nil}" \
		--define "debug_package %{nil}" --define "_build_id_links none" --define "_buildhost localhost" \
		--define "clamp_mtime_to_source_date_epoch 1" --define "use_source_date_epoch_as_buildtime 1" "$spec"
	cp "$rpm"/RPMS/*/*.rpm "$dist"
	files+=("$(basename "$rpm"/RPMS/*/*.rpm)")
}

# release ARCH TR
release() {
	local name=tr-$version-$1-linux
	local root=$work/$name packaged=$work/$1-packaged
	tree "$1" "$2" "$root" "" tr tr-trace
	tarball "$name" "$root"
	tree "$1" "$2" "$packaged" /usr tr-trace
	find "$packaged/usr/share/man" -type f -exec gzip -9n {} +
	if command -v dpkg-deb >/dev/null; then debian "$1" "$packaged"; fi
	if command -v rpmbuild >/dev/null; then rpm "$1" "$packaged"; fi
	echo "release: $1: tr is $(stat -c %s "$root/bin/tr") bytes"
}

# recorder ARCH TR: the recorder alone, for images in which nothing is read.
recorder() {
	local name=tr-$version-$1-linux-record
	local root=$work/$name
	local doc=$root/share/doc/tr
	mkdir -p "$doc"
	install -D -m 755 "$2" "$root/bin/tr-trace"
	cp LICENSES/*.txt "$doc"
	parts "$1" >"$doc/tr.spdx.json"
	chmod -R u=rwX,go=rX "$root"
	tarball "$name" "$root"
	echo "release: $1: the recorder alone is $(stat -c %s "$2") bytes"
}

# All that is missing is reported before the first build.
lacking=0
lacks() { # lacks PART REASON
	echo "release: no $1: $2" >&2
	lacking=$((lacking + 1))
}
command -v dpkg-deb >/dev/null || lacks "Debian package" "dpkg-deb is not installed"
command -v rpmbuild >/dev/null || lacks "RPM" "rpmbuild (rpm) is not installed"
command -v apt-ftparchive >/dev/null || lacks "repository for apt" "apt-ftparchive (apt-utils) is not installed"
command -v createrepo_c >/dev/null || lacks "repository of RPMs" "createrepo_c (createrepo-c) is not installed"
aarch64=
if [ "$(uname -m)" != x86_64 ]; then
	lacks "release for another architecture" "x86-64 builds it"
elif reason=$(scripts/build.sh --aarch64 --lacks 2>&1); then
	aarch64=yes
else
	lacks "release for another architecture" "${reason#build: } (CONTRIBUTING.md has its packages)"
fi
if [ $lacking -gt 0 ] && [ "${ALLOW_PARTIAL-}" != 1 ]; then
	echo "release: nothing is released in part, unless ALLOW_PARTIAL=1 is set" >&2
	exit 1
fi
if [ -n "$aarch64" ]; then scripts/build.sh --aarch64; fi
scripts/build.sh --record-only
recorder "$(uname -m)" "$target/release/tr-record"
scripts/build.sh
native=$target/release/tr
release "$(uname -m)" "$native"
if [ -n "$aarch64" ]; then release aarch64 "$target/aarch64-unknown-linux-gnu/release/tr"; fi
(cd "$dist" && sha256sum "${files[@]}" >SHA256SUMS && cat SHA256SUMS)
rm -f "$dist/SHA256SUMS.minisig"
if [ -n "${MINISIGN_KEY-}" ]; then
	minisign -S -s "$MINISIGN_KEY" -t "tr $version" -m "$dist/SHA256SUMS"
fi
scripts/repositories.sh "$dist"
echo "release: $dist"
