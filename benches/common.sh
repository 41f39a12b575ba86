# Sourced by compare.sh and overhead.sh: the binary to measure, a directory for their files
# (which they remove), the storm, medians.
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tr=$(realpath "${TR:-target/release/tr}")
dir=$(mktemp -d)
gcc -O1 -pthread -o "$dir/storm" fixtures/programs/storm.c

median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
