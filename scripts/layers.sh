#!/usr/bin/env bash
# Checks that the dependencies between the crates, and between the files of a crate, point one way.
set -euo pipefail
cd "$(dirname "$0")/.."
bad=0
allow() { # allow CRATE OURS...: the only crates of ours that CRATE may name
	local crate=$1
	shift
	local found
	found=$(scripts/cargo.sh tree --locked -p "$crate" -e normal --prefix none --format '{p}' | awk '{ print $1 }' |
		grep -E '^tr-' | grep -vx "$crate" | sort -u || true)
	for name in $found; do
		if [[ " $* " != *" $name "* ]]; then
			echo "layers: $crate must not depend on $name" >&2
			bad=1
		fi
	done
}
forbid() { # forbid CRATE PATTERN: a foreign crate that CRATE must not name
	if grep -Eq "$2" <<<"$(scripts/cargo.sh tree --locked -p "$1" -e normal --prefix none --format '{p}')"; then
		echo "layers: $1 must not depend on $2" >&2
		bad=1
	fi
}
package() { sed -n 's/^name = "\(.*\)"/\1/p' "crates/$1/Cargo.toml" | head -1; }
allow tr-trace-format
allow tr-bpf
allow tr-redact tr-trace-format
allow tr-output
allow tr-symbols
allow tr-record tr-bpf tr-trace-format tr-output tr-redact tr-symbols
allow tr-programs tr-trace-format tr-text
allow tr-analyze tr-programs tr-trace-format tr-text
allow tr-text
allow tr-insight tr-analyze tr-trace-format tr-text tr-programs
allow tr-failure tr-insight tr-analyze tr-trace-format tr-text tr-programs
allow tr-advice tr-insight tr-analyze tr-trace-format tr-text tr-programs
allow tr-placing tr-insight tr-analyze tr-trace-format tr-text tr-programs
allow tr-import tr-placing tr-insight tr-analyze tr-trace-format tr-text tr-programs
allow tr-report tr-failure tr-advice tr-insight tr-analyze tr-trace-format tr-text tr-programs
allow tr-compare tr-report tr-failure tr-advice tr-insight tr-analyze tr-trace-format tr-text tr-programs
allow tr-predict tr-report tr-failure tr-advice tr-placing tr-insight tr-analyze tr-trace-format tr-text tr-programs
allow tr-export tr-import tr-placing tr-advice tr-insight tr-analyze tr-trace-format tr-text tr-programs
allow tr-mcp tr-text
for crate in format output redact symbols text programs analyze insight failure advice placing report compare predict export import mcp; do
	forbid "$(package "$crate")" '^libbpf'
	grep -q '^#!\[forbid(unsafe_code)\]' "crates/$crate/src/lib.rs" || {
		echo "layers: crates/$crate must forbid unsafe code" >&2
		bad=1
	}
done
# Recordings are read away from Linux, too: the crates that read use nothing that one system alone has, but
# behind cfg. Neither do they depend on what has.
for crate in format redact text programs analyze insight failure advice placing report compare predict export import; do
	forbid "$(package "$crate")" '^(nix|landlock|procfs) '
	while IFS=: read -r file line _; do
		before=$(sed -n "$((line > 3 ? line - 3 : 1)),${line}p" "$file")
		if ! grep -q '#\[cfg(' <<<"$before"; then
			echo "layers: $file:$line: only one system has this; put it behind cfg" >&2
			bad=1
		fi
	done < <(grep -rnE '\b(nix|libc|rustix|landlock)::|\bos::(unix|linux|fd|windows)\b|File::open\("/(proc|sys)|(read|read_to_string)\("/(proc|sys)' \
		"crates/$crate/src" --include='*.rs')
done
# At most 3 files of a crate may use each other.
python3 scripts/circles.py || bad=1
[ "$bad" -eq 0 ] && echo "layers: every arrow points the right way"
exit "$bad"
