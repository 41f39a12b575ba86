#!/usr/bin/env python3
"""Measures COMMAND: CPU time in s, wall time in s, memory in KiB.

    measure.py COMMAND...

Memory is the process's own: the largest RssAnon of its /proc/PID/status, looked up every
2 ms. That is heap, stacks, and what is still there of freed memory. Pages of a mapped
file are the page cache's, and are not in it.
"""

import resource
import subprocess
import sys
import tempfile
import time


def own_memory(pid):
    """Private memory of a process, in KiB; 0 after its exit."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
            return max((int(line.split()[1]) for line in status if line.startswith("RssAnon")), default=0)
    except ProcessLookupError:
        return 0


def cpu_time():
    """CPU time of all children that have ended, in s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    command = sys.argv[1:]
    # There may be some already: of a script that chose the Python and became it.
    before = cpu_time()
    begin, most = time.monotonic(), 0
    # Its output matters only if it fails.
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said) as child:
            while child.poll() is None:
                most = max(most, own_memory(child.pid))
                time.sleep(0.002)
        wall = time.monotonic() - begin
        if child.returncode:
            said.seek(0)
            sys.exit(f"{said.read().decode(errors='replace')}{command}: status {child.returncode}")
    print(cpu_time() - before, wall, most)


if __name__ == "__main__":
    main()
