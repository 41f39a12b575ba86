#!/usr/bin/env bash
# cargo. Under sudo, in a checkout of the user who called sudo, it runs as that user,
# with their toolchain: no file in target/ or in their home becomes root's.
set -euo pipefail
if [ "$(id -u)" -eq 0 ] && [ -n "${SUDO_UID-}" ] && [ "$SUDO_UID" != 0 ] && [ "$(stat -c %u "$(dirname "$0")")" = "$SUDO_UID" ]; then
	home=$(getent passwd "$SUDO_UID" | cut -d: -f6)
	cargo=$home/.cargo/bin/cargo
	[ -x "$cargo" ] || cargo=$(command -v cargo || true)
	as=(sudo -u "#$SUDO_UID" -H env "PATH=$home/.cargo/bin:$PATH")
else
	cargo=$(command -v cargo || true)
	[ -n "$cargo" ] || cargo=${HOME:-/root}/.cargo/bin/cargo
	export PATH=$PATH:${cargo%/*}
	as=()
fi
if [ ! -x "$cargo" ]; then
	echo "no Rust toolchain: neither cargo on PATH nor $cargo; https://rustup.rs installs one" >&2
	exit 1
fi
# An older one prints an error about a key of Cargo.toml that it does not know.
needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml")
version=$("${as[@]}" "$cargo" --version)
version=${version#cargo }
version=${version%% *}
if [[ $version == [0-9]* ]] && ! printf '%s\n' "$needed" "$version" | sort -V -C; then
	echo "Rust $needed or later is needed, and $cargo is $version; \`rustup update\` or https://rustup.rs installs it" >&2
	exit 1
fi
exec "${as[@]}" "$cargo" "$@"
