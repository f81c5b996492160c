#!/usr/bin/env bash
# How long downloads take with 1, 2, 4, 8 and 16 connections and with as many as the daemon finds to be right: from
# servers that limit each connection (nginx `limit_rate`), and over lines that share one rate, delay, vary, fall and
# come back (line.py). A number that takes far longer than the best ends the row: smaller ones take longer still.
#
# ONLY (a pattern of names of lines, all by default), DLD_BIN_DIR (.build/release), BENCH_DIR (where files go; memory by default),
# BENCH_REPORT (Markdown).
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin

bin=$(cd "${DLD_BIN_DIR:-.build/release}" && pwd)
proxy=$PWD/Tests/Benchmarks/line.py
place=$(mktemp -d "${BENCH_DIR:-/dev/shm}/dld-connections-XXXXXX")
report=${BENCH_REPORT:-.build/bench-connections.md}
daemon= server= line=

stop() {
    if [ -n "${!1}" ]; then kill -TERM "${!1}" 2>/dev/null && wait "${!1}" 2>/dev/null || true; fi
    printf -v "$1" ''
}
clean_up() {
    trap - EXIT INT TERM HUP
    stop daemon
    stop line
    stop server
    rm -rf "$place"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
chmod 755 "$place"
mkdir -p "$place/root"
port=$(free_port)
{
    echo "daemon off; worker_processes 1; pid $place/nginx.pid; error_log $place/nginx.log;"
    echo "events { worker_connections 1024; }"
    echo "http { access_log off; sendfile on; server { listen 127.0.0.1:$port; root $place/root;"
    for rate in 50k 200k 1m 4m 20m; do
        echo "location /$rate/ { limit_rate $rate; rewrite ^/$rate/([0-9]+)M.* /\$1M break; }"
    done
    echo "location / { rewrite ^/([0-9]+)M.* /\$1M break; } } }"
} >"$place/nginx.conf"
nginx -c "$place/nginx.conf" &
server=$!
cat >"$place/dld.yaml" <<CONF
limits: {active-tasks: 100}
disk: {min-free: 0}
CONF
export DLD_SOCKET=$place/socket

say() { echo "$*" | tee -a "$report"; }
now() { date +%s%6N; }
start() {
    stop daemon
    rm -rf "$place/state" "$place/files"
    mkdir -p "$place/state" "$place/files"
    "$bin/dld" --config "$place/dld.yaml" --state-directory "$place/state" --socket "$place/socket" \
        --download-directory "$place/files" 2>>"$place/log" &
    daemon=$!
    until "$bin/dlctl" status >/dev/null 2>&1; do sleep 0.02; done
}
# Seconds that so many downloads of a URL take with so many connections each; at the most so many seconds.
fetch() {
    local url=$1 tasks=$2 connections=$3 limit=$4 begun
    begun=$(now)
    mapfile -t ids < <(seq -f "$url-%g" "$tasks" | "$bin/dlctl" add --connections "$connections" --input -)
    : >"$place/counts"
    if [ "$connections" = auto ]; then
        until "$bin/dlctl" list --json >"$place/list" && jq -e 'all(.[]; .state == "completed")' "$place/list" >/dev/null; do
            jq 'map(.connections // 0) | add' "$place/list" >>"$place/counts"
            sleep 0.08
        done
    elif ! "$bin/dlctl" wait "${ids[@]}" --timeout "$limit" >/dev/null; then
        echo -
        return
    fi
    awk "BEGIN { printf \"%.2f\", ($(now) - $begun) / 1e6 }"
}
# What most of the last third of the time saw.
settled() {
    awk '{ n[NR] = $1 } END { f = int(NR * 2 / 3) + 1; for (i = f; i <= NR; i++) c[n[i]]++
        k = 0; half = (NR - f + 1) / 2; for (v = 0; v < 200; v++) { k += c[v]; if (k >= half) { print v; exit } } }' \
        "$place/counts"
}
row() {
    local name=$1 size=$2 tasks=$3 location=$4 address url count seconds best=999 row="" need="" auto again limit
    shift 4
    if [ -n "${ONLY:-}" ] && ! [[ $name =~ $ONLY ]]; then return; fi
    [ -e "$place/root/${size}M" ] || truncate -s "${size}M" "$place/root/${size}M"
    declare -A taken=()
    for count in 16 8 4 2 1; do
        address=$port
        shape address "$@"
        start
        limit=$(awk "BEGIN { printf \"%d\", ($best >= 999) ? 120 : $best * 1.3 + 2 }")
        seconds=$(fetch "http://127.0.0.1:$address/$location${size}M" "$tasks" "$count" "$limit")
        taken[$count]=$seconds
        if [ "$seconds" = - ]; then break; fi
        best=$(awk "BEGIN { print ($seconds < $best) ? $seconds : $best }")
    done
    for count in 1 2 4 8 16; do
        seconds=${taken[$count]:--}
        row+=" $seconds |"
        if [ -z "$need" ] && [ "$seconds" != - ] && awk "BEGIN { exit !($seconds <= $best * 1.05) }"; then
            need=$((count * tasks > 16 ? 16 : count * tasks))
        fi
    done
    address=$port
    shape address "$@"
    start
    url=http://127.0.0.1:$address/$location${size}M
    auto=$(fetch "$url" "$tasks" auto 0)
    count=$(settled)
    say "| $name |$row $auto | $(awk "BEGIN { printf \"%.2f\", $auto / $best }") | $count | $need |"
}
# A line of its own, where there are options for one.
shape() {
    local -n result=$1
    shift
    stop line
    if [ $# = 0 ]; then return; fi
    result=$(free_port)
    python3 "$proxy" --port "$result" --upstream "$port" "$@" &
    line=$!
    until (exec 3<>"/dev/tcp/127.0.0.1/$result") 2>/dev/null; do sleep 0.02; done
}

mkdir -p "$(dirname "$report")"

: >"$report"
say "**Seconds with a fixed number of connections, and with an automatic one**"
say
say "| line | 1 | 2 | 4 | 8 | 16 | automatic | of the best | settled at | needed |"
say "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
row "50 KiB/s a connection" 6 1 50k/
row "200 KiB/s a connection" 30 1 200k/
row "1 MiB/s a connection" 128 1 1m/
row "4 MiB/s a connection" 384 1 4m/
row "20 MiB/s a connection" 1024 1 20m/
row "8 MiB/s for all" 48 1 "" --total 8192
row "16 MiB/s for all, 256 KiB of window, 20 ms" 96 1 "" --total 16384 --window 256 --latency 0.02
row "16 MiB/s for all, 256 KiB of window, 80 ms" 96 1 "" --total 16384 --window 256 --latency 0.08
row "16 MiB/s for all, 256 KiB of window, 200 ms" 96 1 "" --total 16384 --window 256 --latency 0.2
row "8 MiB/s for all, jitter of 50 %" 48 1 "" --total 8192 --jitter 0.5
row "1 MiB/s a connection, jitter of 50 %" 96 1 "" --each 1024 --jitter 0.5
row "1 MiB/s a connection, one slow of eight" 80 1 "" --each 1024 --slow-every 8
row "2 MiB/s a connection, a quarter from 3 s to 6 s" 192 1 "" --each 2048 --drop 3 6
row "8 MiB/s for all, a quarter from 3 s to 6 s" 48 1 "" --total 8192 --drop 3 6
# Sixteen connections share a smaller file in pieces of 1 MiB, each of which nginx sends at once, whatever its limit is.
row "1 MiB/s a connection, four downloads" 60 4 1m/
row "8 MiB/s for all, four downloads" 12 4 "" --total 8192
