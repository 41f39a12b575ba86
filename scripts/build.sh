#!/usr/bin/env bash
# Builds target/release/tr: static, which halves the time from an exec of tr to the exec of the
# system's tr, or dynamic where the static libraries are missing.
#
#   build.sh [--demo] [--without-record]    --demo: target/demo/tr, which takes half the time to build
#   build.sh --record-only    target/release/tr-record, which reads no recording
#   build.sh --aarch64    target/aarch64-unknown-linux-gnu/release/tr, static, on a machine of another
#                         architecture; status 3 where compiler, target or libraries are missing.
#                         With --lacks it only reports what is missing
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
profile=release
libraries=(c elf z)
gcc=gcc
options=()
lacks=
for option; do
	case $option in
	--demo) profile=demo ;;
	--without-record)
		libraries=(c)
		options+=(--no-default-features --features reading)
		;;
	--record-only)
		options+=(--no-default-features --features record)
		# target/release/tr stays what it is.
		made=$target/release/tr-record
		target=$target/record-only
		export CARGO_TARGET_DIR=$target
		;;
	--aarch64)
		gcc=aarch64-linux-gnu-gcc
		options+=(--target aarch64-unknown-linux-gnu)
		export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$gcc PKG_CONFIG_ALLOW_CROSS=1
		export PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig
		;;
	--lacks) lacks=1 ;;
	*)
		sed -n 's/^#   //p' "$0" >&2
		exit 2
		;;
	esac
done
build=(--locked --profile "$profile" "${options[@]}" --bin tr)
# Position-dependent code saves 13,000 relocations at each start, a third of that time.
static=(-C target-feature=+crt-static -C relocation-model=static)

# A program that was linked wrongly crashes. Methods that this machine does not allow do not count.
crashes() {
	local method status
	[[ ${options[*]} != *" reading" ]] || return 1
	for method in bpf ptrace; do
		status=0
		"$target/$profile/tr" record --method $method -q -o /dev/null -- true >/dev/null 2>&1 || status=$?
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
	if [ -n "$lacks" ]; then exit; fi
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
