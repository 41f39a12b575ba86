#!/usr/bin/env bash
# Builds target/release/tr: static, which halves the time from an exec of tr to the exec of the
# system's tr, or dynamic where the static libraries are missing.
#
#   build.sh [--without-record]
#   build.sh --record-only    target/release/tr-record, which reads no recording
#   build.sh --aarch64    target/aarch64-unknown-linux-gnu/release/tr, static, on a machine of another
#                         architecture; status 3 where compiler, target or libraries are missing.
#                         With --lacks it only reports what is missing
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
libraries=(c elf z)
gcc=gcc
options=()
case ${1-} in
--without-record)
	libraries=(c)
	options=(--no-default-features)
	;;
--record-only)
	options=(--no-default-features --features record-only)
	# target/release/tr stays what it is.
	made=$target/release/tr-record
	target=$target/record-only
	export CARGO_TARGET_DIR=$target
	;;
--aarch64)
	gcc=aarch64-linux-gnu-gcc
	options=(--target aarch64-unknown-linux-gnu)
	export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$gcc PKG_CONFIG_ALLOW_CROSS=1
	export PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig
	;;
esac
# zstd's ways of searching that no level of ours takes (crates/format/src/zip.rs): its tables of functions keep all in.
for unused in DFAST GREEDY BTLAZY2 BTOPT BTULTRA; do
	CFLAGS="${CFLAGS-} -DZSTD_EXCLUDE_${unused}_BLOCK_COMPRESSOR"
done
export CFLAGS
build=(--locked --release "${options[@]}" --bin tr)
# Position-dependent code saves 13,000 relocations at each start, a third of that time.
static=(-C target-feature=+crt-static -C relocation-model=static)
# What LLD can leave out, which Rust 1.90 brings along for x86-64: tables of unwinding, 1.4 MB, and equal functions, 0.2 MB.
smaller=(-C link-arg=-Wl,--icf=all -C link-arg=-Wl,--no-eh-frame-hdr -C "link-arg=-Wl,-T,$PWD/scripts/no-unwinding.ld")

# This machine's linker takes these, and the program runs.
takes_smaller() {
	local out
	out=$(mktemp) || return 1
	echo 'fn main() {}' | rustc -C panic=abort "${static[@]}" "${smaller[@]}" -o "$out" - >/dev/null 2>&1 && "$out"
	local status=$?
	rm -f "$out"
	return $status
}

# A program that was linked wrongly crashes. Methods that this machine does not allow do not count.
crashes() {
	local method status
	[[ ${options[*]} != --no-default-features ]] || return 1
	for method in bpf ptrace; do
		status=0
		"$target/release/tr" record --method $method -q -o /dev/null -- true >/dev/null 2>&1 || status=$?
		if [ $status -ge 128 ]; then
			echo "build: tr record --method $method ends with status $status" >&2
			return 0
		fi
	done
	return 1
}

# The recorder alone has a name of its own.
named() {
	if [ -n "${made-}" ]; then install -D "$target/release/tr" "$made"; fi
}

if [ "$gcc" = gcc ] && takes_smaller; then static+=("${smaller[@]}"); fi
missing=
command -v "$gcc" >/dev/null || missing=" $gcc"
for library in "${libraries[@]}"; do
	file=$($gcc "-print-file-name=lib$library.a" 2>/dev/null || true)
	[ -e "$file" ] || missing="$missing lib$library.a"
done
if [ "$gcc" != gcc ]; then
	[ -d "$(rustc --print target-libdir --target "${options[1]}")" ] || missing="$missing Rust's ${options[1]}"
	if [ -n "$missing" ]; then
		echo "build: cannot build for aarch64: this machine lacks$missing" >&2
		exit 3
	fi
	if [ "${2-}" = --lacks ]; then exit; fi
	exec scripts/cargo.sh rustc "${build[@]}" -- "${static[@]}"
elif [ -n "$missing" ]; then
	echo "build: tr is linked dynamically, as this machine lacks$missing"
elif scripts/cargo.sh rustc "${build[@]}" -- "${static[@]}" && ! crashes; then
	named
	exit
else
	echo "build: the static build failed; trying a dynamic one"
fi
scripts/cargo.sh build "${build[@]}"
named
