#!/bin/sh
# After the files of a package are removed (postrm, %postun): no link to the program stays.
set -e
link=${DPKG_ROOT-}/usr/local/bin/tr
case ${1-} in
remove | purge | 0)
	if [ "$(readlink "$link")" = /usr/bin/tr-trace ]; then rm -f "$link"; fi
	;;
esac
