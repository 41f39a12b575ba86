# For compare.sh and overhead.sh, which source it: the binary to measure, a
# directory for what they make (theirs to remove), the storm, medians.
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tr=$(realpath "${TR:-target/release/tr}")
dir=$(mktemp -d)
gcc -O1 -pthread -o "$dir/storm" fixtures/programs/storm.c

median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
