#!/bin/sh
# After the files of a package are unpacked (postinst, %post): owner, mode and capabilities are as before.
set -e
PATH=$PATH:/usr/sbin:/sbin
program=${DPKG_ROOT-}/usr/bin/tr-trace
notes=${DPKG_ROOT-}/var/lib/tr-where-time
capable="setcap cap_bpf,cap_perfmon+p $program"
if [ -f "$notes/rights" ]; then
	capabilities=
	{
		read -r owner mode
		read -r capabilities || :
	} <"$notes/rights"
	rm "$notes/rights"
	rmdir "$notes" 2>/dev/null || :
	# In this order: a new owner takes the capabilities away.
	[ "$(stat -c %u:%g "$program")" = "$owner" ] || chown "$owner" "$program"
	chmod "$mode" "$program"
	if [ -n "$capabilities" ]; then
		$capable || echo "tr-trace: the new file lacks the capabilities of the old one: $capable" >&2
	fi
	exit 0
fi
cat <<END
tr-trace records scheduling events as root. To let the members of a group record every process:
    groupadd --system tr-trace; chown root:tr-trace $program; chmod 750 $program
    $capable
To have it as tr, too, which passes other uses on to the system's tr:
    ln -s /usr/bin/tr-trace /usr/local/bin/tr
END
