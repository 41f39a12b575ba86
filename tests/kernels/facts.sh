#!/bin/busybox sh
# Uses the network, a disk, and more memory than a cgroup has; prints the kernel's own counts.
# shellcheck shell=dash
set -e
dns >&2
# A disk in memory, read in 64 requests.
dd if=/dev/zero of=/tmp/image bs=1M count=4 2>/dev/null
losetup /dev/loop0 /tmp/image
before=$(awk '{ print $1 }' /sys/block/loop0/stat)
dd if=/dev/loop0 of=/dev/null bs=4k count=64 iflag=direct 2>/dev/null
after=$(awk '{ print $1 }' /sys/block/loop0/stat)
echo "requests $((after - before))"
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/small
echo 16M >/sys/fs/cgroup/small/memory.max
# 64 MiB in one piece: the kernel kills dd.
sh -c 'echo $$ >/sys/fs/cgroup/small/cgroup.procs; exec dd if=/dev/zero of=/dev/null bs=64M count=1' >&2 || true
echo "kills $(awk '/^oom_kill / { print $2 }' /sys/fs/cgroup/small/memory.events)"
dd if=/dev/zero of=/dev/null bs=1 count=5000 2>/dev/null
echo "pressures $(ls /proc/pressure 2>/dev/null | wc -l)"
