#!/usr/bin/env bash
# build.sh OUTPUT: builds the Debian package from this tree, with debhelper, and puts it into the directory OUTPUT.
#
# Prints the path of the package. The version grows with each commit: 0.1.0~rCOUNT+gCOMMIT sorts before the release
# 0.1.0. The date is that of the commit, so that the same sources make the same package.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
output=$(cd "$1" && pwd)
release=$(sed -n 's/.*static let version = "\(.*\)"/\1/p' "$root/Sources/ControlProtocol/ProductVersion.swift")

version=$release
SOURCE_DATE_EPOCH=$(date +%s)
if commit=$(git -C "$root" rev-parse --short=8 HEAD 2>/dev/null); then
    SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
    if ! git -C "$root" describe --exact-match --match "v$release" HEAD >/dev/null 2>&1; then
        version="$release~r$(git -C "$root" rev-list --count HEAD)+g$commit"
    fi
fi
# A package for a test may need a certain version.
version=${DEB_VERSION:-$version}
export SOURCE_DATE_EPOCH SOURCE=$root

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/dld"
cp -r "$root/packaging/debian" "$work/dld/debian"
cp "$root/systemd/dld.sysusers.conf" "$work/dld/debian/dld.sysusers"
cp "$root/systemd/dld.tmpfiles.conf" "$work/dld/debian/dld.tmpfiles"
{
    printf 'dld (%s) bookworm; urgency=medium\n\n  * See /usr/share/doc/dld/changelog.gz.\n\n' "$version"
    printf ' -- dld maintainers <maintainers@dld.example.org>  %s\n' "$(LC_ALL=C date --utc -R --date="@$SOURCE_DATE_EPOCH")"
} >"$work/dld/debian/changelog"
cd "$work/dld"
# The toolchain of Swift is not a package, so the declared build dependencies are not the whole truth.
dpkg-buildpackage --build=binary --no-sign --no-check-builddeps >&2
# A larger package means that the libraries are stored twice; see debian/rules.
if [ "$(stat -c %s "$work"/dld_*.deb)" -gt $((30 << 20)) ]; then
    echo 'error: the package is larger than 30 MiB' >&2
    exit 1
fi
mv "$work"/dld_*.deb "$output/"
ls -t "$output"/dld_*.deb | head -n 1
