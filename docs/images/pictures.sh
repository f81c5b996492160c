#!/usr/bin/env bash
# Makes the pictures of `dlctl top` and `dlctl watch`, with a daemon and a server of their own. Needs tmux and nginx.
#
# DLD_BIN_DIR (.build/release)
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C.UTF-8 PATH=$PATH:/usr/sbin:/sbin

bin=$(cd "${DLD_BIN_DIR:-.build/release}" && pwd)
place=$(mktemp -d /tmp/dld-XXXX)
daemon= server= screen=
clean_up() {
    [ -z "$screen" ] || tmux -L "$screen" kill-server 2>/dev/null || true
    for process in $daemon $server; do kill -TERM "$process" 2>/dev/null && wait "$process" 2>/dev/null || true; done
    rm -rf "$place"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
chmod 755 "$place"
mkdir -p "$place/root" "$place/state" "$place/files"
truncate -s 700M "$place/root/debian-12-amd64.iso" "$place/root/fedora-42-x86_64.iso"
truncate -s 5600M "$place/root/ubuntu-24.04-desktop.iso"
truncate -s 286M "$place/root/nightly.tar.zst"
for number in $(seq 40); do truncate -s 12M "$place/root/photo-$number.tiff"; done
[ "$(id -u)" -ne 0 ] || echo 'user root;' >"$place/nginx.conf"
cat >>"$place/nginx.conf" <<CONF
daemon off; worker_processes 1; pid $place/nginx.pid; error_log $place/nginx.log;
events { worker_connections 1024; }
http { access_log off; sendfile on; server { listen 127.0.0.1:$port; root $place/root; limit_rate 6m; } }
CONF
nginx -c "$place/nginx.conf" &
server=$!
export DLD_SOCKET=$place/socket
echo 'limits: {active-tasks: 6, connections-per-task: 4}' >"$place/dld.yaml"
"$bin/dld" --config "$place/dld.yaml" --state-directory "$place/state" --socket "$place/socket" \
    --download-directory "$place/files" 2>"$place/log" &
daemon=$!
until "$bin/dlctl" status >/dev/null 2>&1; do sleep 0.05; done

add() { "$bin/dlctl" add "$@" >/dev/null; }
add --limit 11M "http://127.0.0.1:$port/ubuntu-24.04-desktop.iso" "http://127.0.0.1:$port/fedora-42-x86_64.iso"
add --limit 480K "http://127.0.0.1:$port/nightly.tar.zst"
add --paused "http://127.0.0.1:$port/debian-12-amd64.iso"
add --batch photos --limit 300K $(seq -f "http://127.0.0.1:$port/photo-%.0f.tiff" 40)
add "http://127.0.0.1:1/missing.bin"
add --start-at 2030-01-31T22:00 -o later.iso "http://127.0.0.1:$port/debian-12-amd64.iso"

# picture NAME COLUMNS ROWS SECONDS DESCRIPTION COMMAND [KEY…]
picture() {
    local name=$1 columns=$2 rows=$3 seconds=$4 description=$5 command=$6
    shift 6
    screen=dld-pictures-$name
    tmux -L "$screen" -f /dev/null new-session -d -x "$columns" -y "$rows" \
        "DLD_SOCKET='$DLD_SOCKET' TERM=xterm-256color '$bin/dlctl' $command"
    tmux -L "$screen" set-option -g status off
    sleep "$seconds"
    for key in "$@"; do
        tmux -L "$screen" send-keys "$key"
        sleep 1.5
    done
    tmux -L "$screen" capture-pane -e -p |
        python3 docs/images/picture.py "$columns" "$rows" "$description" >"docs/images/$name.svg"
    tmux -L "$screen" kill-server
}

picture top-80 80 24 25 'dlctl top on a terminal with 80 columns' top
picture top-200 200 40 20 'dlctl top on a terminal with 200 columns' top
picture top-details 80 30 3 'The details of a task in dlctl top' top Enter
picture watch-80 80 12 5 'dlctl watch on a terminal with 80 columns' watch
