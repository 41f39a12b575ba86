#!/usr/bin/env bash
# Records a load in several kernels and compares every recording with the kernel's own
# figures of that load: Debian's 6.1 and 6.12 in QEMU, without KVM, its 6.12 for aarch64, and the
# running kernel. Kernels that cannot be run here are reported as skipped.
#
#   test-kernels.sh [6.1|6.12|aarch64|host]...     default: 6.1 and host, with TR_LONG all four
#
# TR_AARCH64 names a static tr for aarch64; without it scripts/build.sh --aarch64 builds one. AARCH64_GCC names the
# compiler of the loads for aarch64 (aarch64-linux-gnu-gcc).
# A guest's 4 virtual CPUs share 2, so the host deschedules them at any point, also inside a
# BPF program. Recordings stay in target/kernels/NAME.
# LIMIT (s, default 600) is a kernel's time, SIZE (default 8) the load's.
set -euo pipefail
cd "$(dirname "$0")/.."
limit=${LIMIT:-600}
size=${SIZE:-8}
cache=$PWD/target/kernels
skipped=()
recorded=()
failed=()
mkdir -p "$cache"

# The newest package of a series that apt lists, for an architecture.
package() {
	apt-cache pkgnames "linux-image-$1" | grep -E "^linux-image-${1//./\\.}[.][0-9][^ ]*-cloud-$2$" | sort -V | tail -1
}

# The packages of another architecture, without a change of this machine's: apt has lists of its own for them.
foreign() { # foreign ARCHITECTURE
	local lists=$cache/apt-$1
	export APT_CONFIG=$lists/apt.conf
	mkdir -p "$lists"/{lists,archives}/partial
	cat >"$APT_CONFIG" <<-END
		APT::Architecture "$1";
		APT::Architectures { "$1"; };
		APT::Sandbox::User "root";
		Dir::State::lists "$lists/lists";
		Dir::Cache "$lists";
		Dir::State::status "/dev/null";
	END
	apt-get update -qq >/dev/null 2>"$cache/fetch.err"
}

# fetch NAME: downloads its kernel as $cache/NAME/vmlinuz, or prints the reason why it cannot. For another
# architecture it downloads busybox, too. It runs in a subshell.
fetch() (
	series=$1 dir=$cache/$1 machine=amd64
	if [ -e "$dir/vmlinuz" ] && [ -e "$dir/loop.ko" ]; then return; fi
	command -v apt-get >/dev/null || { echo "no apt-get to fetch it with"; return 1; }
	if [ "$1" = aarch64 ]; then
		series=6.12 machine=arm64
		foreign "$machine" || { echo "no lists of packages for $machine: $(tail -1 "$cache/fetch.err")"; return 1; }
	fi
	name=$(package "$series" "$machine")
	[ -n "$name" ] || { echo "no package linux-image-$series.*-cloud-$machine here"; return 1; }
	rm -rf "$dir"
	mkdir -p "$dir"
	(cd "$dir" && apt-get download "$name" >/dev/null 2>"$cache/fetch.err") ||
		{ echo "cannot download $name: $(tail -1 "$cache/fetch.err")"; return 1; }
	dpkg -x "$dir"/*.deb "$dir/unpacked"
	for module in "$dir"/unpacked/lib/modules/*/kernel/drivers/block/loop.ko*; do
		cp "$module" "$dir/"
	done
	[ ! -e "$dir/loop.ko.xz" ] || xz -d "$dir/loop.ko.xz"
	mv "$dir"/unpacked/boot/vmlinuz-* "$dir/vmlinuz"
	rm -rf "$dir/unpacked" "$dir"/*.deb
	if [ "$machine" = amd64 ]; then return; fi
	(cd "$dir" && apt-get download busybox-static >/dev/null 2>"$cache/fetch.err") ||
		{ echo "cannot download busybox-static: $(tail -1 "$cache/fetch.err")"; return 1; }
	dpkg -x "$dir"/*.deb "$dir/unpacked"
	mv "$dir/unpacked/bin/busybox" "$dir/busybox"
	rm -rf "$dir/unpacked" "$dir"/*.deb
)

# aarch64_program: prints the path of a static tr for aarch64, or the reason why there is none.
aarch64_program() {
	local program=${TR_AARCH64-}
	if [ -z "$program" ]; then
		scripts/build.sh --aarch64 --lacks 2>&1 || return 1
		scripts/build.sh --aarch64 >"$cache/build" 2>&1 || { tail -n 3 "$cache/build"; return 1; }
		program=${CARGO_TARGET_DIR:-target}/aarch64-unknown-linux-gnu/release/tr
	fi
	[ -x "$program" ] || { echo "$program is no program"; return 1; }
	echo "$program"
}

# guest NAME: records in a kernel, into $cache/NAME, or prints the reason why it cannot.
guest() {
	local dir=$cache/$1 root status=0 program=target/debug/tr programs=$cache
	local busybox machine serial console out source
	fetch "$1" || return 1
	busybox=$(command -v busybox)
	machine=(qemu-system-x86_64 -cpu max) serial=(-serial "file:$dir/out.tar") console=ttyS0 out=ttyS1
	if [ "$1" = aarch64 ]; then
		program=$(aarch64_program) || { echo "$program"; return 1; }
		machine=(qemu-system-aarch64 -machine virt -cpu cortex-a72) busybox=$dir/busybox programs=$dir
		serial=(-chardev "file,id=out,path=$dir/out.tar" -device "pci-serial,chardev=out")
		console=ttyAMA0 out=ttyS0
		for source in load dns; do
			"${AARCH64_GCC:-aarch64-linux-gnu-gcc}" -O1 -static -pthread -o "$dir/$source" "fixtures/programs/$source.c" ||
				{ echo "cannot compile $source.c for aarch64"; return 1; }
		done
	fi
	root=$dir/root
	rm -rf "$root" "$dir"/{followed,all,light,facts}.* "$dir/status" "$dir/out.tar"
	mkdir -p "$root/bin"
	cp tests/kernels/init "$root/init"
	cp "$busybox" "$root/bin/busybox"
	cp "$programs/load" "$programs/dns" "$root/bin/"
	cp tests/kernels/facts.sh "$root/bin/facts"
	cp "$dir/loop.ko" "$root/"
	if [ "$program" = target/debug/tr ]; then
		strip -o "$root/bin/tr" "$program"
		# The program's libraries and the loader, at their paths.
		ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
			mkdir -p "$root$(dirname "$library")"
			cp -L "$library" "$root$library"
		done
	else
		cp "$program" "$root/bin/tr"
	fi
	echo "$size" >"$root/size"
	echo "$out" >"$root/out"
	(cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1 >"$dir/initrd.gz")
	# An emulated CPU can run the int3 by which another one patches the kernel's code (QEMU without
	# KVM): its panic in the boot, before any program of ours, says nothing, so it boots again.
	for _ in 1 2 3; do
		status=0
		nice -n 10 taskset -c "$cpus" timeout --foreground "$limit" "${machine[@]}" \
			-accel tcg,thread=multi -smp 4 -m 1024 -nodefaults -display none -no-reboot \
			-kernel "$dir/vmlinuz" -initrd "$dir/initrd.gz" -append "console=$console quiet panic=-1" \
			-serial "file:$dir/console" "${serial[@]}" </dev/null >"$dir/qemu" 2>&1 || status=$?
		if grep -q '^the boot is done' "$dir/console" || ! grep -q 'Kernel panic' "$dir/console"; then break; fi
	done
	if [ "$status" -ne 0 ] || ! tar -xf "$dir/out.tar" -C "$dir" 2>/dev/null; then
		echo "the guest failed (status $status, 124 is the limit of $limit s):"
		tail -n 5 "$dir/qemu" "$dir/console"
		return 2
	fi
}

# host NAME: records here, with ftrace at the same tracepoint as an oracle, or prints the
# reason why it cannot.
host() {
	local dir=$cache/$1 witness=/sys/kernel/tracing/instances/tr-test work status=0
	[ "$(id -u)" -eq 0 ] || { echo "not root"; return 1; }
	rm -rf "$dir"
	mkdir -p "$dir"
	[ -d /sys/kernel/tracing/instances ] || mount -t tracefs nodev /sys/kernel/tracing 2>/dev/null || true
	if mkdir "$witness" 2>/dev/null; then
		echo mono >"$witness/trace_clock"
		echo 16384 >"$witness/buffer_size_kb"
		echo 1 >"$witness/events/sched/sched_switch/enable"
	else
		echo "no ftrace here to compare with" >&2
	fi
	# In a neutral directory: the recording, which becomes a fixture, holds its path and the
	# command line.
	work=/tmp/tr-kernels
	rm -rf "$work"
	mkdir "$work"
	cp "$cache/load" "$work/load"
	timeout --foreground "$limit" bash -c 'cd "$0" && exec -a tr "$1" record -q -o load.bin -- ./load "$2"' \
		"$work" "$PWD/target/debug/tr" "$size" >"$dir/load.load" || status=$?
	mv "$work/load.bin" "$dir/" || status=1
	rm -rf "$work"
	if [ -d "$witness" ]; then
		echo 0 >"$witness/events/sched/sched_switch/enable"
		sed -n 's/.*\[\([0-9]*\)\].* \([0-9.]*\): sched_switch: .*prev_pid=\([0-9]*\) .*next_pid=\([0-9]*\) .*/\1 \2 \3 \4/p' \
			"$witness/trace" >"$dir/load.switches"
		rmdir "$witness"
	fi
	[ "$status" -eq 0 ] || { echo "the recording failed (status $status)"; return 2; }
}

# run NAME FUNCTION: records in one kernel, or prints the reason why it cannot.
run() {
	local start=$SECONDS why status=0
	why=$("$2" "$1") || status=$?
	case $status in
	0)
		echo "$1: recorded in $((SECONDS - start)) s"
		recorded+=("$cache/$1")
		;;
	1)
		echo "$1: skipped: $why"
		skipped+=("$1")
		;;
	*)
		echo "$1: FAILED: $why"
		failed+=("$1")
		;;
	esac
}

# Two CPUs for the guests, at most.
cpus=$(awk '/^Cpus_allowed_list/ { print $2 }' /proc/self/status | sed 's/,/\n/g' |
	awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2) && n < 2; i++) printf "%s%d", n++ ? "," : "", i }')
# The packages are those of the other tests: another choice has other features, and is compiled anew.
scripts/cargo.sh test --locked --workspace --no-run -q
gcc -O1 -static -pthread -o "$cache/load" fixtures/programs/load.c
gcc -O1 -static -pthread -o "$cache/dns" fixtures/programs/dns.c
if (($# == 0)); then set -- 6.1 ${TR_LONG+6.12 aarch64} host; fi
for kernel; do
	case $kernel in
	host) run host host ;;
	*)
		emulator=qemu-system-x86_64
		[ "$kernel" != aarch64 ] || emulator=qemu-system-aarch64
		if command -v $emulator >/dev/null && command -v busybox >/dev/null; then
			run "$kernel" guest
		else
			echo "$kernel: skipped: $emulator or busybox is missing"
			skipped+=("$kernel")
		fi
		;;
	esac
done
status=0
if ((${#recorded[@]})); then
	TR_KERNELS="${recorded[*]}" scripts/cargo.sh test --locked --workspace -q --test kernels -- --nocapture || status=1
fi
echo "kernels: $((${#recorded[@]})) recorded, ${#failed[@]} failed${failed:+ (${failed[*]})}, ${#skipped[@]} skipped${skipped:+ (${skipped[*]})}"
((status == 0 && ${#failed[@]} == 0))
