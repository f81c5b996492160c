#!/usr/bin/env bash
# Shows dld at work: a private daemon and a private nginx on loopback, in a temporary directory that goes in the end.
# Needs the built programs (DLD_BIN_DIR, or .build/release) and nginx; `make demo` provides both.
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH=$PATH:/usr/sbin:/sbin
bin=$(cd "${DLD_BIN_DIR:-.build/release}" && pwd)
place=$(mktemp -d "${TMPDIR:-/tmp}/dld-demo-XXXXXX")
daemon= nginx=

clean_up() {
    trap - EXIT INT TERM HUP
    if [ -n "$daemon" ]; then kill -TERM "$daemon" 2>/dev/null && wait "$daemon" 2>/dev/null || true; fi
    if [ -n "$nginx" ]; then kill -TERM "$nginx" 2>/dev/null && wait "$nginx" 2>/dev/null || true; fi
    rm -rf "$place"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' green=$'\e[32m' plain=$'\e[0m'; else bold= green= plain=; fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
shown=()
proved() {
    printf '%s✓%s %s\n' "$green" "$plain" "$*"
    shown+=("$*")
}
fail() {
    printf 'demo: %s\n' "$*" >&2
    tail -n 20 "$place/dld.log" "$place/nginx/error.log" >&2 || true
    exit 1
}
dlctl() { "$bin/dlctl" --socket "$place/dld.sock" "$@"; }
# field ID NAME: one field of a task, as its JSON has it.
field() { dlctl show "$1" --json | tr -d '\n' | sed -E "s/.*\"$2\" ?: ?\"?([^,\"}]*).*/\1/"; }
mib() { echo "$(($1 / 1048576)) MiB"; }
same() { cmp "$1" "$2" || fail "$2 is not what the server holds"; }

start_daemon() {
    "$bin/dld" --config "$place/dld.yaml" --socket "$place/dld.sock" --state-directory "$place/state" \
        --download-directory "$place/downloads" 2>>"$place/dld.log" &
    daemon=$!
    for _ in {1..200}; do
        dlctl status >/dev/null 2>&1 && return
        kill -0 "$daemon" 2>/dev/null || fail 'the daemon ended'
        sleep 0.05
    done
    fail 'the daemon does not answer'
}

start_nginx() {
    # Below the ports that the kernel gives to outgoing connections, which could hold one that nobody listens on.
    while port=$((20000 + RANDOM % 12000)) && (: </dev/tcp/127.0.0.1/$port) 2>/dev/null; do :; done
    mkdir -p "$place"/nginx/{files,in}
    [ "$(id -u)" -ne 0 ] || echo 'user root;' >"$place/nginx/nginx.conf"
    cat >>"$place/nginx/nginx.conf" <<CONF
daemon off;
pid $place/nginx/pid;
error_log $place/nginx/error.log;
events {}
http {
    log_format sent '\$uri \$body_bytes_sent';
    access_log $place/nginx/access.log sent;
    sendfile on;
    client_body_temp_path $place/nginx/body;
    proxy_temp_path $place/nginx/proxy;
    fastcgi_temp_path $place/nginx/fastcgi;
    uwsgi_temp_path $place/nginx/uwsgi;
    scgi_temp_path $place/nginx/scgi;
    server {
        listen 127.0.0.1:$port;
        root $place/nginx/files;
        location /slow/ { alias $place/nginx/files/; limit_rate 32m; }
        location /in/ { alias $place/nginx/in/; dav_methods PUT; client_max_body_size 0; }
    }
}
CONF
    nginx -p "$place/nginx" -e "$place/nginx/error.log" -c "$place/nginx/nginx.conf" &
    nginx=$!
    for _ in {1..100}; do
        (: </dev/tcp/127.0.0.1/$port) 2>/dev/null && return
        sleep 0.05
    done
    fail 'nginx does not answer'
}

say 'A private web server and a private daemon, on this machine alone'
mkdir "$place/downloads"
# One connection a task, so that the server's limit of 32 MiB a second and connection can be watched.
echo 'limits: {connections-per-task: 1}' >"$place/dld.yaml"
start_nginx
start_daemon
server=http://127.0.0.1:$port
files=$place/nginx/files
head -c 128M /dev/urandom >"$files/film.bin"
head -c 256M /dev/urandom >"$files/disk.img"
for name in a b c d; do head -c $((RANDOM * 40)) /dev/urandom >"$files/$name.dat"; done
echo "$server, and dld with pid $daemon"

say 'Download 128 MiB and watch it come'
dlctl add --wait "$server/slow/film.bin"
same "$files/film.bin" "$place/downloads/film.bin"
proved 'a download with its progress, every byte compared'

say 'Download 256 MiB; pause it on the way, then resume it'
id=$(dlctl add "$server/slow/disk.img")
dlctl wait "$id" --timeout 2 >/dev/null || true
dlctl pause "$id"
at=$(field "$id" bytesDone)
sleep 1
[ "$(field "$id" bytesDone)" = "$at" ] || fail 'a paused task moved'
[ ! -e "$place/downloads/disk.img" ] || fail 'the file is there before it is whole'
proved "paused: it stands still at $(mib "$at"), and no file of that name is there yet"
dlctl resume "$id"

say 'Kill the daemon with SIGKILL in the middle, and start it again'
dlctl wait "$id" --timeout 3 >/dev/null || true
kill -KILL "$daemon"
wait "$daemon" 2>/dev/null || true
echo "killed; of the file there is so far: $(find "$place/downloads" -name '.dld-*' -printf '%f\n')"
start_daemon
echo "started again with pid $daemon; the task goes on from $(mib "$(field "$id" bytesDone)")"
dlctl wait "$id"
same "$files/disk.img" "$place/downloads/disk.img"
total=$(field "$id" bytesTotal)
# The server's own count, since a killed daemon cannot have written down all that it fetched.
sent=$(awk '$1 == "/slow/disk.img" { sum += $2 } END { printf "%d", sum }' "$place/nginx/access.log")
[ $((sent * 4)) -lt $((total * 5)) ] || fail "the server sent $sent bytes for $total"
proved "killed and resumed: $(mib "$total") byte for byte, for which the server sent $(mib "$sent")"

say 'Run a queue file, twice'
cat >"$place/queue.yaml" <<QUEUE
batch: evening
defaults: {directory: evening}
downloads:
  - $server/a.dat
  - $server/b.dat
  - $server/c.dat
  - {url: $server/d.dat, output: last.dat, priority: low}
QUEUE
dlctl queue apply "$place/queue.yaml"
dlctl queue apply "$place/queue.yaml"
ids=$(dlctl list --batch evening --json | grep -oE '"id" ?: ?[0-9]+' | grep -oE '[0-9]+')
[ "$(wc -l <<<"$ids")" -eq 4 ] || fail 'the second time added something'
# shellcheck disable=SC2086
dlctl wait $ids
for name in a b c; do same "$files/$name.dat" "$place/downloads/evening/$name.dat"; done
same "$files/d.dat" "$place/downloads/evening/last.dat"
proved 'a queue file: four files, and applying it again added nothing'

say 'Upload a file'
dlctl upload --wait "$place/downloads/film.bin" "$server/in/film.bin"
same "$files/film.bin" "$place/nginx/in/film.bin"
proved 'an upload by PUT, every byte compared on the server'

say 'What the daemon says of it'
dlctl list
left=$(find "$place/downloads" -name '.dld-*')
[ -z "$left" ] || fail "left behind: $left"
kill -TERM "$daemon"
wait "$daemon" || fail "the daemon ended with $?"
daemon=
proved 'no part file is left, and SIGTERM ended the daemon with 0'

say "Shown in $SECONDS seconds:"
printf '  %s\n' "${shown[@]}"
clean_up
[ ! -e "$place" ] || exit 1
echo '  nothing is left behind'
