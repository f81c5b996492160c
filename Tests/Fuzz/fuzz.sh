#!/usr/bin/env bash
# Fuzzes the parsers with libFuzzer and AddressSanitizer.
#
#   fuzz.sh [SECONDS] [TARGET…]    each target for so long (5); 0 tries the seeds alone
#   fuzz.sh keep [TARGET…]         adds to the seeds what earlier runs found, as few inputs as reach the same code
#
# The target `control` sends requests with extreme values to a daemon that runs with AddressSanitizer. It is not among
# those that are tried without a name: the daemon has to be built for it.
#
# Ends with 1 if an input crashes, hangs or eats memory; the input is kept, and the last line says how to try it again.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${FUZZ_DIRECTORY:-$root/.build-fuzz}
checkouts=${FUZZ_CHECKOUTS:-$root/.build/checkouts}
swiftc=${SWIFTC:-swiftc}
# Of the toolchain's two ways to tell of a crash, AddressSanitizer's goes on to keep the input.
export SWIFT_BACKTRACE=enable=no

seconds=${1:-5}
shift || true
if [ "$seconds" != keep ] && ! [[ $seconds =~ ^[0-9]+$ ]]; then
    sed -n '4,5s/^# *//p' "$0" >&2
    exit 64
fi
targets=("$@")
if [ "${targets[*]}" = control ]; then
    # Every method with every field of its own at its edges, and then at random for so long.
    build=(swift build --package-path "$root" --scratch-path "$root/.build-asan" --sanitize address)
    "${build[@]}" --product dld
    swift build --package-path "$root" --build-tests
    # What a daemon leaves behind when it is killed is no leak.
    ASAN_OPTIONS="detect_leaks=0 suppressions=$root/Tests/address-sanitizer.supp" DLD_FUZZ_SECONDS=$seconds \
        DLD_BIN_DIR=$("${build[@]}" --show-bin-path) \
        swift test --package-path "$root" --skip-build --filter '^Integration\.ExtremeRequestTests'
    exit
fi
if [ ${#targets[@]} = 0 ]; then
    for directory in "$here"/Corpus/*/; do targets+=("$(basename "$directory")"); done
fi

mkdir -p "$work/modules/CLinux"
if ! [ -d "$checkouts/swift-http-types" ]; then
    swift package --package-path "$root" resolve
fi

# The parsers as they stand, without the rest of the library: what would bring libcurl along is left out.
transfer=$root/Sources/Transfer
sources=(
    "$transfer"/Authentication/AuthenticationOffer{,Parser}.swift
    "$transfer"/Messages/URLRedaction.swift "$transfer"/Support/ReadableText.swift
    "$transfer"/Support/{CopyOnWrite,UInt8+ASCII}.swift
    "$transfer"/Exports.swift
    "$transfer"/Cookies/{Cookie,Cookie+Matching,Cookie+Netscape,CookieOrigin,SetCookie}.swift
    "$transfer"/Reachability/{NetlinkMessage,NetworkPicture}.swift
    "$root"/Sources/TaskFiles/Text/{FileError,FileFaults,FileNote,FileText}.swift
    "$root"/Sources/TaskFiles/QueueFiles/QueueEntry.swift
    "$root"/Sources/TaskFiles/{Aria2,Checksums,Metalink,XML}/*.swift
    "$here"/*.swift
)
printf 'module CLinux { header "%s" export * }\n' "$root/Sources/CLinux/include/clinux.h" \
    >"$work/modules/CLinux/module.modulemap"

newer() { [ ! -e "$1" ] || [ -n "$(find "${@:2}" -newer "$1" -print -quit)" ]; }
flags=(-O -g -sanitize=fuzzer,address -parse-as-library -swift-version 6 -package-name dld
    -enable-upcoming-feature ExistentialAny -enable-upcoming-feature MemberImportVisibility
    -enable-upcoming-feature InternalImportsByDefault)
if newer "$work/modules/HTTPTypes.swiftmodule" "$checkouts"/swift-http-types/Sources/HTTPTypes/*.swift "$0"; then
    (cd "$work" && "$swiftc" -O -g -sanitize=fuzzer,address -parse-as-library -swift-version 5 -suppress-warnings \
        -whole-module-optimization -module-name HTTPTypes -package-name http-types \
        -emit-module-path modules/HTTPTypes.swiftmodule -c -o HTTPTypes.o \
        "$checkouts"/swift-http-types/Sources/HTTPTypes/*.swift)
fi
# module NAME SOURCE…: builds a target of ours that others import.
module() {
    local name=$1
    shift
    if ! newer "$work/modules/$name.swiftmodule" "$@" "$work/HTTPTypes.o" "$0"; then return; fi
    (cd "$work" && "$swiftc" "${flags[@]}" -whole-module-optimization -enable-testing -module-name "$name" -I modules \
        -emit-module-path "modules/$name.swiftmodule" -c -o "$name.o" "$@")
}
module TaskModel "$root"/Sources/TaskModel/*/*.swift
module HTTPMessages "$root"/Sources/HTTPMessages/*.swift
module HTTPCaching "$root"/Sources/HTTPCaching/*.swift
objects=("$work"/{HTTPTypes,TaskModel,HTTPMessages,HTTPCaching}.o)
if newer "$work/fuzz" "${sources[@]}" "${objects[@]}" "$root/Sources/CLinux/include" "$0"; then
    (cd "$work" && "$swiftc" "${flags[@]}" -whole-module-optimization -use-ld=lld -module-name Fuzz -I modules -I modules/CLinux \
        -o fuzz "${sources[@]}" "${objects[@]}")
fi

status=0
for target in "${targets[@]}"; do
    seeds=$here/Corpus/$target found=$work/found/$target crashes=$work/crashes
    [ -d "$seeds" ] || { echo "no such target: $target" >&2; exit 64; }
    mkdir -p "$found" "$crashes"
    options=(-artifact_prefix="$crashes/$target-" -timeout=10 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1)
    if [ -e "$here/Dictionaries/$target.dict" ]; then options+=(-dict="$here/Dictionaries/$target.dict"); fi
    case $seconds in
        keep) options+=(-merge=1) && inputs=("$seeds" "$found") ;;
        0) options+=(-runs=0) && inputs=("$seeds") ;;
        *) options+=(-max_total_time="$seconds") && inputs=("$found" "$seeds") ;;
    esac
    log=$work/$target.log
    if FUZZ_TARGET=$target "$work/fuzz" "${options[@]}" "${inputs[@]}" >"$log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1)
        printf '%-20s %s seeds, %s runs\n' "$target" "$(find "$seeds" -type f | wc -l)" "${runs:-no}"
    else
        status=1
        grep -aE 'SUMMARY|ERROR|atal error|Test unit written' "$log" | head -5 >&2 || true
        input=$(grep -aoE "$crashes/[^ ]+" "$log" | tail -1 || true)
        echo "$target failed: see $log; again: FUZZ_TARGET=$target SWIFT_BACKTRACE=enable=no $work/fuzz $input" >&2
    fi
done
exit "$status"
