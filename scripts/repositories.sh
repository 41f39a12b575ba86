#!/usr/bin/env bash
# Makes repositories of the packages in DIST, as files that any web server gives out: DIST/apt of the Debian packages,
# DIST/rpm of the RPMs. Packages of earlier releases that are in DIST/apt/pool and DIST/rpm stay.
#
#   repositories.sh DIST    GPG_KEY, a key that gpg has, signs both; its public half is tr.asc in each
set -euo pipefail
cd "$1"
: "${SOURCE_DATE_EPOCH:?the time of the release, in s since 1970}"
shopt -s nullglob

# add DIRECTORY FILE...: with the time of the release, which the lists have.
add() {
	local to=$1
	shift
	mkdir -p "$to"
	install -m 644 -p "$@" "$to"
	touch -d "@$SOURCE_DATE_EPOCH" "${@/#/$to/}"
}
sign() { # sign OUTPUT OPTION... FILE
	local output=$1
	shift
	gpg --batch --yes --quiet ${GPG_KEY:+--local-user "$GPG_KEY"} --output "$output" "$@"
}

debs=(*.deb)
if [ ${#debs[@]} -gt 0 ] && command -v apt-ftparchive >/dev/null; then
	add apt/pool "${debs[@]}"
	rm -rf apt/dists
	cd apt
	for arch in amd64 arm64; do
		[ -n "$(echo pool/*_"$arch".deb)" ] || continue
		list=dists/stable/main/binary-$arch
		mkdir -p "$list"
		apt-ftparchive --arch "$arch" packages pool >"$list/Packages"
		gzip -9nk "$list/Packages"
	done
	arches=$(cd dists/stable/main && echo binary-*)
	# It writes the time of its call.
	apt-ftparchive -o APT::FTPArchive::Release::Origin=tr -o APT::FTPArchive::Release::Suite=stable \
		-o APT::FTPArchive::Release::Codename=stable -o APT::FTPArchive::Release::Components=main \
		-o "APT::FTPArchive::Release::Architectures=${arches//binary-/}" release dists/stable |
		sed "s/^Date: .*/Date: $(LC_ALL=C date -u -d "@$SOURCE_DATE_EPOCH" '+%a, %d %b %Y %T +0000')/" >Release
	mv Release dists/stable
	if [ -n "${GPG_KEY-}" ]; then
		sign dists/stable/InRelease --clearsign dists/stable/Release
		sign dists/stable/Release.gpg --armor --detach-sign dists/stable/Release
		sign tr.asc --armor --export "$GPG_KEY"
	fi
	cd ..
fi

rpms=(*.rpm)
if [ ${#rpms[@]} -gt 0 ] && command -v createrepo_c >/dev/null; then
	add rpm "${rpms[@]}"
	rm -rf rpm/repodata
	createrepo_c --quiet --no-database --revision "$SOURCE_DATE_EPOCH" --set-timestamp-to-revision rpm
	if [ -n "${GPG_KEY-}" ]; then
		sign rpm/repodata/repomd.xml.asc --armor --detach-sign rpm/repodata/repomd.xml
		sign rpm/tr.asc --armor --export "$GPG_KEY"
	fi
fi
