#!/usr/bin/env bash
# Runs COMMAND and says every five seconds that it still runs. Usage: heartbeat.sh TEXT COMMAND...
set -euo pipefail
text=$1
shift
beats() {
	trap 'kill "$sleeper"; exit' TERM
	while :; do
		sleep 5 &
		sleeper=$!
		wait "$sleeper"
		echo "$text: $((SECONDS - start)) s" >&2
	done
}
start=$SECONDS
beats &
beater=$!
trap 'kill "$beater" 2>/dev/null || true' EXIT
"$@"
