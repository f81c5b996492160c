#!/usr/bin/env bash
# How near the daemon keeps to a rate that it was given (`dlctl limit`), for one download and for a hundred that share
# it, before and after it is changed while they run; what that costs in processor time and wake-ups.
#
# SECONDS_EACH (8), DLD_BIN_DIR (.build/release), BENCH_DIR (where files go; memory by default, as a disk may be slower
# than the largest rate), BENCH_REPORT (Markdown).
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin

seconds=${SECONDS_EACH:-8}
bin=$(cd "${DLD_BIN_DIR:-.build/release}" && pwd)
place=$(mktemp -d "${BENCH_DIR:-/dev/shm}/dld-rates-XXXXXX")
report=${BENCH_REPORT:-.build/bench-rates.md}
daemon= server=

stop() {
    if [ -n "${!1}" ]; then kill -TERM "${!1}" 2>/dev/null && wait "${!1}" 2>/dev/null || true; fi
    printf -v "$1" ''
}
clean_up() {
    trap - EXIT INT TERM HUP
    stop daemon
    stop server
    rm -rf "$place"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
chmod 755 "$place"
mkdir -p "$place/root"
# Holes: they cost no memory.
truncate -s 8G "$place/root/file"
cat >"$place/nginx.conf" <<CONF
daemon off; worker_processes 1; pid $place/nginx.pid; error_log $place/nginx.log;
events { worker_connections 1024; }
http { access_log off; sendfile on; server { listen 127.0.0.1:$port; root $place/root; location / { try_files /file =404; } } }
CONF
nginx -c "$place/nginx.conf" &
server=$!
cat >"$place/dld.yaml" <<CONF
limits: {active-tasks: 100, connections-per-host: 100, connections-per-task: 1}
disk: {min-free: 0}
CONF
export DLD_SOCKET=$place/socket

now() { date +%s%6N; }
fetched() { "$bin/dlctl" list --json | jq 'map(.bytesFetched) | add'; }
ticks() { awk '{ print $14 + $15 }' "/proc/$daemon/stat"; }
wakeups() { cat "/proc/$daemon"/task/*/status | awk '/^voluntary/ { n += $2 } END { print n }'; }
label() { if [ "$1" -ge 1024 ]; then echo "$(($1 / 1024)) MiB/s"; else echo "$1 KiB/s"; fi; }
# What came in so many seconds, in percent of what was asked for.
measure() {
    local rate=$1 length=$2 start bytes
    bytes=$(fetched)
    start=$(now)
    sleep "$length"
    awk "BEGIN { printf \"%.1f\", ($(fetched) - $bytes) / (($(now) - $start) / 1e6) / $rate * 100 }"
}

mkdir -p "$(dirname "$report")"
{
    echo "**A rate and what is kept of it**"
    echo
    echo "| asked for | downloads | kept | then, while they run | processor | wake-ups a second |"
    echo "|---:|---:|---:|---:|---:|---:|"
    for kib in 50 1024 102400 512000; do
        for count in 1 100; do
            rate=$((kib * 1024))
            length=$seconds
            # So much fits into memory.
            if [ $kib -ge 512000 ]; then length=2; fi
            rm -rf "$place/state" "$place/files"
            mkdir -p "$place/state" "$place/files"
            "$bin/dld" --config "$place/dld.yaml" --state-directory "$place/state" --socket "$place/socket" \
                --download-directory "$place/files" 2>>"$place/log" &
            daemon=$!
            until "$bin/dlctl" limit --download "${kib}K" >/dev/null 2>&1; do sleep 0.02; done
            seq -f "http://127.0.0.1:$port/%g" "$count" | "$bin/dlctl" add --input - >/dev/null
            sleep 1
            before=$(ticks) woken=$(wakeups)
            kept=$(measure "$rate" "$length")
            used=$(awk "BEGIN { printf \"%.0f\", ($(ticks) - $before) / $(getconf CLK_TCK) / $length * 100 }")
            woken=$((($(wakeups) - woken) / length))
            # The largest is halved, the others doubled.
            if [ $kib -ge 512000 ]; then other=$((kib / 2)); else other=$((kib * 2)); fi
            "$bin/dlctl" limit --download "${other}K" >/dev/null
            sleep 1
            changed=$(measure "$((other * 1024))" "$length")
            echo "| $(label $kib) | $count | $kept % | $(label $other): $changed % | $used % | $woken |"
            stop daemon
        done
    done
} | tee "$report"
