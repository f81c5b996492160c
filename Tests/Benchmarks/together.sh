#!/usr/bin/env bash
# Features that meet: rates with several connections, with mirrors and a checksum, and over HTTP/2. Each row compares the
# time that a download takes with the time that its rate implies, and the bytes that were fetched with those of the file.
#
# RUNS (5), DLD_BIN_DIR (.build/release), BENCH_DIR (where files go; memory by default), BENCH_REPORT (Markdown).
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin

runs=${RUNS:-5}
bin=$(cd "${DLD_BIN_DIR:-.build/release}" && pwd)
place=$(mktemp -d "${BENCH_DIR:-/dev/shm}/dld-together-XXXXXX")
report=${BENCH_REPORT:-.build/bench-together.md}
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

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
port=$(free_port) secure=$(free_port)
chmod 755 "$place"
mkdir -p "$place/root" "$place/state" "$place/files"
head -c 13M /dev/urandom >"$place/root/13"
head -c 30M /dev/urandom >"$place/root/30"
head -c 200M /dev/urandom >"$place/root/200"
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$place/key.pem" -out "$place/cert.pem" -days 2 -subj /CN=localhost \
    -addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' 2>/dev/null
cat >"$place/nginx.conf" <<CONF
daemon off; worker_processes 1; pid $place/nginx.pid; error_log $place/nginx.log;
events { worker_connections 1024; }
http {
    access_log off; sendfile on; root $place/root;
    server { listen 127.0.0.1:$port; }
    server { listen 127.0.0.1:$secure ssl http2; ssl_certificate $place/cert.pem; ssl_certificate_key $place/key.pem; }
}
CONF
nginx -c "$place/nginx.conf" &
server=$!
cat >"$place/dld.yaml" <<CONF
limits: {active-tasks: 64, connections-per-host: 64}
hosts: {localhost: {http-version: 2}}
tls: {ca-file: $place/cert.pem}
disk: {min-free: 0}
CONF
export DLD_SOCKET=$place/socket
"$bin/dld" --config "$place/dld.yaml" --state-directory "$place/state" --socket "$place/socket" \
    --download-directory "$place/files" 2>"$place/log" &
daemon=$!
until "$bin/dlctl" status >/dev/null 2>&1; do sleep 0.02; done

now() { date +%s%6N; }
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
# Seconds that a download takes, and how often its bytes were fetched.
download() {
    local start id
    start=$(now)
    id=$("$bin/dlctl" add "$@")
    "$bin/dlctl" wait "$id" >/dev/null
    awk "BEGIN { print ($(now) - $start) / 1e6 }" >>"$place/times"
    "$bin/dlctl" show "$id" --json | jq '.bytesFetched / .bytesTotal' >>"$place/fetched"
}
row() {
    local name=$1 ideal=$2
    shift 2
    rm -f "$place/times" "$place/fetched"
    for _ in $(seq "$runs"); do download "$@"; done
    awk "BEGIN { printf \"| %s | %.2f s | %.2f s | %.2f | %.2f |\n\", \"$name\", $ideal, $(median <"$place/times"), \
        $(sort -n "$place/times" | tail -n 1) / $ideal, $(sort -n "$place/fetched" | tail -n 1) }"
}
anonymous() { awk '/^RssAnon/ { print int($2 / 1024) }' "/proc/$daemon/status"; }
share() { "$bin/dlctl" list --json | jq "[.[] | select(.name | startswith(\"$1\")) | .bytesFetched] | min / 1048576 / $2 * 100 | round"; }

mkdir -p "$(dirname "$report")"
sum=$(sha256sum "$place/root/13" | cut -d ' ' -f 1)
{
    echo "**Rates together with connections, a mirror and a checksum** (median of $runs; the slowest and the most fetched)"
    echo
    echo "| download | its rate implies | took | slowest, times that | fetched, times the file |"
    echo "|---|---:|---:|---:|---:|"
    for connections in 1 4 16 auto; do
        row "30 MiB at 20 MiB/s, $connections connections" 1.5 \
            --connections "$connections" --limit 20M "http://127.0.0.1:$port/30"
        row "13 MiB at 5 MiB/s, $connections connections, checksum and mirror" 2.6 \
            --connections "$connections" --limit 5M --checksum "sha256:$sum" \
            --mirror "http://localhost:$port/13" "http://127.0.0.1:$port/13"
    done
    echo
    echo "**Rates over HTTP/2, TLS, one server**"
    echo
    echo "| downloads | the slowest has, of its share | memory of the daemon |"
    echo "|---|---:|---:|"
    "$bin/dlctl" remove --all --yes >/dev/null 2>&1 || "$bin/dlctl" remove --all >/dev/null
    for number in $(seq 10); do
        "$bin/dlctl" add -o "a$number" --limit 1M "https://localhost:$secure/200" >/dev/null
    done
    sleep 6
    echo "| 10 at 1 MiB/s, after 6 s | $(share a 6) % | $(anonymous) MiB |"
    "$bin/dlctl" remove --all --yes >/dev/null 2>&1 || "$bin/dlctl" remove --all >/dev/null
    for number in 1 2; do "$bin/dlctl" add -o "b$number" --limit 20M "https://localhost:$secure/200" >/dev/null; done
    for number in 1 2 3; do "$bin/dlctl" add -o "c$number" --limit 200K "https://localhost:$secure/200" >/dev/null; done
    sleep 5
    echo "| 2 at 20 MiB/s beside 3 at 200 KiB/s, after 5 s: the former | $(share b 100) % | $(anonymous) MiB |"
    echo "| 2 at 20 MiB/s beside 3 at 200 KiB/s, after 5 s: the latter | $(share c 0.9765625) % | |"
    echo
    echo "Transfers that had to be kicked: $("$bin/dlctl" status --json | jq .internalFaults)"
} | tee "$report"
