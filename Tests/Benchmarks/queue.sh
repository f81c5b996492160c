#!/usr/bin/env bash
# What the queue costs with a million tasks in it:
#
#   adding     one file of URLs, all or nothing, durable when the command returns; the daemon's memory at its highest
#   telling    `dlctl status`, a page of `dlctl list` and the last page, processes and all; a restart until it answers
#   running    20,000 small files, with 20,000 queued and with all: the ratio of the medians
#
# TASKS (1000000), RUNS (3), DLD_BIN_DIR (.build/release), BENCH_DIR (where to work; a disk with room), BENCH_REPORT
# (Markdown).
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin

tasks=${TASKS:-1000000}
runs=${RUNS:-3}
bin=$(cd "${DLD_BIN_DIR:-.build/release}" && pwd)
place=$(mktemp -d "${BENCH_DIR:-/var/tmp}/dld-queue-XXXXXX")
report=${BENCH_REPORT:-.build/bench-queue.md}
small=20000
daemon= server= life=0

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

milliseconds() { date +%s%3N; }
timed() {
    local start
    start=$(milliseconds)
    "$@" >/dev/null
    echo $(($(milliseconds) - start))
}
median() { sort -n | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'; }
start_daemon() {
    "$bin/dld" --state-directory "$place/state" --socket "$place/socket" --download-directory "$place/files-$life" \
        ${1:+--config "$1"} 2>>"$place/log" &
    daemon=$!
    export DLD_SOCKET=$place/socket
    until "$bin/dlctl" status >/dev/null 2>&1; do
        kill -0 "$daemon" 2>/dev/null || { tail -5 "$place/log" >&2; exit 1; }
        sleep 0.005
    done
}
# The files stay until the end: ext4 passes over inodes that were deleted a moment ago, and everything takes longer.
fresh() {
    stop daemon
    life=$((life + 1))
    rm -rf "$place/state"
    mkdir -p "$place/state" "$place/files-$life"
}

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
chmod 755 "$place"
mkdir -p "$place/root"
head -c 10000 /dev/urandom >"$place/root/file"
cat >"$place/nginx.conf" <<CONF
daemon off; worker_processes 1; pid $place/nginx.pid; error_log $place/nginx.log;
events { worker_connections 1024; }
http {
    access_log off; keepalive_requests 10000000;
    server { listen 127.0.0.1:$port; root $place/root; location / { try_files /file =404; } }
}
CONF
urls() { seq -f "http://127.0.0.1:$port/some/where/file-%07.0f.bin" "$1"; }
urls "$tasks" >"$place/all"
urls "$small" >"$place/few"

# With no server there yet, what is added stays where it is.
for _ in $(seq "$runs"); do
    fresh
    start_daemon
    timed "$bin/dlctl" add --input "$place/all" >>"$place/added"
    awk '/VmHWM/ { print int($2 / 1024) }' "/proc/$daemon/status" >>"$place/memory"
    for _ in 1 2 3; do
        timed "$bin/dlctl" status >>"$place/status"
        timed "$bin/dlctl" list --limit 50 >>"$place/list"
        timed "$bin/dlctl" rpc task.list "{\"after\": $((tasks - 50)), \"limit\": 50}" >>"$place/last"
        timed "$bin/dlctl" --version >>"$place/nothing"
    done
    stop daemon
    start=$(milliseconds)
    start_daemon
    echo $(($(milliseconds) - start)) >>"$place/restart"
done

# Milliseconds in which a task after the first hundred becomes the last but a hundred of those that are wanted.
run_small() {
    python3 - "$place/socket" "$small" <<'CLIENT'
import json, socket, sys, time
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
stream = connection.makefile("rw")
def completed():
    stream.write('{"jsonrpc":"2.0","id":1,"method":"daemon.status"}\n')
    stream.flush()
    return json.loads(stream.readline())["result"]["tasks"]["completed"]
def until(count):
    end = time.monotonic() + 120
    while (now := completed()) < count:
        if time.monotonic() > end: sys.exit("the small files did not come")
        time.sleep(0.02)
    return now, time.monotonic()
first, start = until(100)
last, end = until(int(sys.argv[2]) - 100)
print(int((end - start) * 1000 * int(sys.argv[2]) / (last - first)))
CLIENT
}
for _ in $(seq "$runs"); do
    for list in few all; do
        fresh
        start_daemon
        "$bin/dlctl" add --input "$place/$list" >/dev/null
        nginx -c "$place/nginx.conf" &
        server=$!
        run_small >>"$place/run-$list"
        stop server
    done
done

added=$(median <"$place/added")
few=$(median <"$place/run-few")
all=$(median <"$place/run-all")
mkdir -p "$(dirname "$report")"
{
    echo "**The queue with $tasks tasks** (medians of $runs runs)"
    echo
    echo "| what | |"
    echo "|---|---:|"
    echo "| added from one file | $(awk "BEGIN { printf \"%.1f\", $added / 1000 }") s, $((tasks * 1000 / added)) a second |"
    echo "| the daemon's memory at its highest | $(median <"$place/memory") MiB |"
    echo "| \`dlctl status\` | $(median <"$place/status") ms |"
    echo "| \`dlctl list --limit 50\` | $(median <"$place/list") ms |"
    echo "| the last page of \`task.list\` | $(median <"$place/last") ms |"
    echo "| of each, a \`dlctl\` that asks nothing | $(median <"$place/nothing") ms |"
    echo "| a restart until it answers | $(median <"$place/restart") ms |"
    echo "| $small small files with $small queued | $(awk "BEGIN { printf \"%.2f\", $few / 1000 }") s |"
    echo "| the same with $tasks queued | $(awk "BEGIN { printf \"%.2f\", $all / 1000 }") s, $(awk "BEGIN { printf \"%.2f\", $all / $few }") times |"
} | tee "$report"
