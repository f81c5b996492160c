#!/usr/bin/env bash
# Compares the library with Foundation's URLSession and with async-http-client, each in a process of its own:
#
#   get          20,000 responses of 1 KiB into memory
#   download     1 GiB to a file
#   upload       1,000 bodies of 64 KiB from memory
#   upload-file  the same from a file
#
# 64 requests run at once on one session. The runs of a row are interleaved, and judged by their medians. The time runs
# from the first request to the end of the last; processor time and peak memory are those of the whole process. What was
# downloaded is compared with its source after each run, and what was uploaded likewise.
#
# RUNS (5), LIBRARIES_BUILD (.build-libraries), BENCH_DIR (where the download goes; a disk), BENCH_REPORT (Markdown).
# GET_COUNT (20000), DOWNLOAD_MIB (1024), UPLOAD_COUNT (1000).
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin

runs=${RUNS:-5}
get_count=${GET_COUNT:-20000} download_mib=${DOWNLOAD_MIB:-1024} upload_count=${UPLOAD_COUNT:-1000}
report=${BENCH_REPORT:-.build/bench-libraries.md}
libraries=(Transfer Foundation AsyncHTTPClient)
# The server's files are in memory, the downloads on a disk.
place=$(mktemp -d /dev/shm/dld-libraries-XXXXXX)
target=$(mktemp -d "${BENCH_DIR:-/var/tmp}/dld-libraries-XXXXXX")
nginx=

clean_up() {
    trap - EXIT INT TERM HUP
    if [ -n "$nginx" ]; then kill -TERM "$nginx" 2>/dev/null && wait "$nginx" 2>/dev/null || true; fi
    rm -rf "$place" "$target"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
fail() {
    echo "libraries: $*" >&2
    tail -n 20 "$place"/nginx.log >&2 2>/dev/null || true
    exit 1
}

"${SWIFT:-swift}" build --ignore-lock -c release --static-swift-stdlib --package-path Tests/Benchmarks/Libraries \
    --scratch-path "${LIBRARIES_BUILD:-.build-libraries}" --quiet
bin=$(cd "${LIBRARIES_BUILD:-.build-libraries}/release" && pwd)

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
mkdir -p "$place/root/up"
chmod 755 "$place"
head -c 1024 /dev/urandom >"$place/root/small"
head -c "${download_mib}M" /dev/urandom >"$place/root/large"
head -c 65536 /dev/zero | tr '\0' a >"$place/body"
[ "$(id -u)" -ne 0 ] || echo 'user root;' >"$place/nginx.conf"
cat >>"$place/nginx.conf" <<CONF
daemon off; worker_processes 2; pid $place/nginx.pid; error_log $place/nginx.log;
events { worker_connections 2048; }
http {
    access_log off; sendfile on; keepalive_requests 1000000; root $place/root; client_max_body_size 0;
    client_body_temp_path $place/root/body;
    server {
        listen 127.0.0.1:$port backlog=1024;
        location /up/ { dav_methods PUT; }
    }
}
CONF
nginx -e "$place/nginx.log" -c "$place/nginx.conf" &
nginx=$!
for _ in {1..100}; do (: </dev/tcp/127.0.0.1/"$port") 2>/dev/null && break || sleep 0.05; done
server=http://127.0.0.1:$port

# measure ROW LIBRARY: adds a line of library, seconds, processor seconds and MiB to the row's file.
measure() {
    case $1 in
        get) set -- "$@" get "$server/small" "$get_count" 1024 ;;
        download) set -- "$@" download "$server/large" "$target/$2" ;;
        upload) set -- "$@" upload "$server/up/" "$upload_count" 65536 ;;
        upload-file) set -- "$@" upload-file "$server/up/" "$upload_count" "$place/body" ;;
    esac
    local row=$1 library=$2
    shift 2
    timeout 300 "$bin/With$library" "$@" >"$place/output" || fail "$library cannot $*: $(cat "$place/output")"
    case $row in
        download)
            cmp "$target/$library" "$place/root/large" || fail "$library downloaded something else"
            rm "$target/$library"
            ;;
        upload*)
            [ "$(find "$place/root/up" -type f | wc -l)" = "$upload_count" ] || fail "$library lost an upload"
            find "$place/root/up" -type f -exec cmp "$place/body" {} \; || fail "$library uploaded something else"
            rm -r "$place/root/up" && mkdir "$place/root/up"
            ;;
    esac
    awk -v library="$library" '{ v[$1] = $2 } END {
        print library, v["microseconds"] / 1e6, v["processor-microseconds"] / 1e6, v["peak-kib"] / 1024
    }' "$place/output" >>"$place/$row"
}
median() { awk -v library="$2" -v column="$3" '$1 == library { print $column }' "$place/$1" | sort -n |
    awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
# row NAME TITLE
row() {
    local column run step line="$2" count=${#libraries[@]}
    # A library meets the machine as the one before left it. Each run begins with another library, and every second run
    # goes through them in the opposite order: each of the six orders comes once in six runs.
    for ((run = 0; run < runs; run++)); do
        for ((step = 0; step < count; step++)); do
            measure "$1" "${libraries[(run + (run % 2 ? count - step : step)) % count]}"
        done
    done
    for column in 2 3 4; do
        local best=
        for library in "${libraries[@]}"; do
            value=$(median "$1" "$library" $column)
            line+=" | $(awk "BEGIN { printf \"%.2f\", $value }")"
            if [ "$library" = Transfer ]; then ours=$value
            else best=$(printf '%s\n' $best "$value" | sort -n | head -n 1); fi
        done
        line+=" | $(awk "BEGIN { printf \"%.2f\", $ours / $best }")"
    done
    echo "| $line |"
}

mkdir -p "$(dirname "$report")"
{
    echo "**The library beside Foundation's URLSession (F) and async-http-client (A)** (medians of $runs; the ratio is to the"
    echo 'better of the two)'
    echo
    echo '| work | time, s | F | A | ratio | processor, s | F | A | ratio | peak memory, MiB | F | A | ratio |'
    echo '|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|'
    row get "$get_count responses of 1 KiB"
    row download "$download_mib MiB to a file"
    row upload "$upload_count uploads of 64 KiB from memory"
    row upload-file "$upload_count uploads of 64 KiB from a file"
} | tee "$report"
