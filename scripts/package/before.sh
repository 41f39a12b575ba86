#!/bin/sh
# Before the files of a package are unpacked (preinst, %pre): notes what an administrator has given the program
# that is replaced.
set -e
PATH=$PATH:/usr/sbin:/sbin
program=${DPKG_ROOT-}/usr/bin/tr-trace
notes=${DPKG_ROOT-}/var/lib/tr-where-time
if [ -f "$program" ]; then
	mkdir -p "$notes"
	{
		stat -c '%u:%g %a' "$program"
		getcap "$program" 2>/dev/null || :
	} >"$notes/rights"
fi
