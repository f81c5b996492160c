#!/usr/bin/env bash
# Builds a libcurl with WebSockets from its sources, as far as the tests need it; does nothing if it is there.
#
#   build-curl.sh SOURCE PLACE
set -euo pipefail
source=${1-}
place=$2

if [ -z "$source" ] || [ ! -f "$source/configure.ac" ]; then
    cat >&2 <<-EOF
	error: CURL_SOURCE is not a directory with the sources of curl.
	Fetch them and run again, for example:
	    git clone --depth 1 --branch curl-7_88_1 https://github.com/curl/curl /tmp/curl
	    make test-websockets CURL_SOURCE=/tmp/curl
	A repository needs the packages autoconf, automake and libtool; a release has its configure script.
	EOF
    exit 1
fi
source=$(cd "$source" && pwd)
! [ "$place/source" -ef "$source" ] || exit 0

"$(dirname "$0")/../../.ci/install-missing" gcc make pkg-config libssl-dev libnghttp2-dev zlib1g-dev
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cp -r "$source/." "$build"
cd "$build"
if [ ! -x configure ]; then
    "$OLDPWD/.ci/install-missing" autoconf automake libtool
    autoreconf -fi >/dev/null 2>&1
fi
# The names and versions of the symbols are those of Debian's libcurl.
./configure --quiet --prefix="$place" --enable-websockets --enable-versioned-symbols --with-openssl --with-nghttp2 \
    --with-zlib --without-libpsl --without-brotli --without-zstd --without-librtmp --without-libssh2 --without-libidn2 \
    --disable-ldap --disable-ldaps --disable-rtsp --disable-dict --disable-telnet --disable-pop3 --disable-imap \
    --disable-smb --disable-smtp --disable-gopher --disable-mqtt --disable-manual --disable-static \
    --with-ca-bundle=/etc/ssl/certs/ca-certificates.crt
make -s -j"$(nproc)" -C lib
make -s -C lib install
# Made last, so that an interrupted build is repeated.
ln -sfn "$source" "$place/source"
