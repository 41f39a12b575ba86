# Sourced by compare.sh and overhead.sh: the binary to measure, a directory for their files
# (which they remove), the storm, medians.
# shellcheck shell=bash disable=SC2034
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
tr=$(realpath "${TR:-target/release/tr}")
dir=$(mktemp -d)
gcc -O1 -pthread -o "$dir/storm" fixtures/programs/storm.c

median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
