#!/usr/bin/env bash
# How fast the daemon answers:
#
#   at rest    calls a second over one pipelined connection; `dlctl list --limit 50` from exec to exit
#   at work    `daemon.status` while 2 GiB arrive and 1,000 further tasks are active
#   besieged   `daemon.status` with 400 clients that send half a line or read nothing, and a subscriber that is stuck
#
# Ends with 1 where a figure misses its aim, if CHECK is set.
#
# ACTIVE (1000), GIBIBYTES (2), DLD_BIN_DIR (.build/release), BENCH_DIR (where to work; a disk with room), BENCH_REPORT
# (Markdown), CHECK.
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin

bin=$(cd "${DLD_BIN_DIR:-.build/release}" && pwd)
place=$(mktemp -d "${BENCH_DIR:-/var/tmp}/dld-control-XXXXXX")
report=${BENCH_REPORT:-.build/bench-control.md}
active=${ACTIVE:-1000}
gibibytes=${GIBIBYTES:-2}
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

ulimit -n "$(ulimit -Hn)"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
chmod 755 "$place"
mkdir -p "$place/root" "$place/state" "$place/files"
truncate -s "${gibibytes}G" "$place/root/large"
truncate -s 4M "$place/root/slow"
[ "$(id -u)" -ne 0 ] || echo 'user root;' >"$place/nginx.conf"
cat >>"$place/nginx.conf" <<CONF
daemon off; worker_processes 1; pid $place/nginx.pid; error_log $place/nginx.log; worker_rlimit_nofile 8192;
events { worker_connections 4096; }
http {
    access_log off; sendfile on;
    server {
        listen 127.0.0.1:$port; root $place/root;
        location /slow { try_files /slow =404; limit_rate 2k; }
    }
}
CONF
nginx -c "$place/nginx.conf" &
server=$!
cat >"$place/dld.yaml" <<CONF
limits: {active-tasks: $((active + 1)), connections-per-host: $((active + 16)), connections-per-task: 1}
CONF
"$bin/dld" --config "$place/dld.yaml" --state-directory "$place/state" --socket "$place/socket" \
    --download-directory "$place/files" 2>>"$place/log" &
daemon=$!
export DLD_SOCKET=$place/socket
until "$bin/dlctl" status >/dev/null 2>&1; do
    kill -0 "$daemon" 2>/dev/null || { tail -5 "$place/log" >&2; exit 1; }
    sleep 0.01
done

python3 - "$place/socket" "$bin/dlctl" "http://127.0.0.1:$port" "$active" "$gibibytes" "$place/figures" <<'CLIENT'
import json, socket, subprocess, sys, time

path, dlctl, server, active, gibibytes, figures = sys.argv[1:]
active, gibibytes = int(active), int(gibibytes)
call = b'{"jsonrpc":"2.0","id":1,"method":"daemon.status"}\n'


def connect():
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    return connection


class Client:
    def __init__(self):
        self.stream = connect().makefile("rwb")

    def request(self, method, parameters=None):
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters or {}}
        self.stream.write(json.dumps(message).encode() + b"\n")
        self.stream.flush()
        answer = json.loads(self.stream.readline())
        if "error" in answer: sys.exit(f"{method}: {answer['error']}")
        return answer["result"]

    def latency(self):
        start = time.perf_counter()
        self.stream.write(call)
        self.stream.flush()
        self.stream.readline()
        return (time.perf_counter() - start) * 1000


def pipelined(count, window=100):
    stream = connect().makefile("rwb")
    start = time.perf_counter()
    for _ in range(count // window):
        stream.write(call * window)
        stream.flush()
        for _ in range(window): stream.readline()
    return count / (time.perf_counter() - start)


def share(values, part): return sorted(values)[min(len(values) - 1, int(len(values) * part))]


client = Client()
found = {"calls": max(pipelined(20000) for _ in range(3))}

urls = [{"url": f"{server}/slow-{number}", "output": f"slow-{number}", "paused": True} for number in range(active)]
for start in range(0, active, 500): client.request("task.add", {"tasks": urls[start:start + 500]})
times = []
for _ in range(31):
    start = time.perf_counter()
    subprocess.run([dlctl, "list", "--limit", "50"], stdout=subprocess.DEVNULL, check=True)
    times.append((time.perf_counter() - start) * 1000)
found["list"] = share(times, 0.5)

client.request("task.resume", {"filter": {"states": ["paused"]}})
end = time.monotonic() + 120
while (tasks := client.request("daemon.status")["tasks"]).get("active", 0) < active:
    if time.monotonic() > end: sys.exit(f"too few tasks become active: {tasks}")
    time.sleep(0.1)
time.sleep(2)
identifier = client.request("task.add", {"tasks": [{"url": f"{server}/large", "priority": "now"}]})["ids"][0]
watcher = Client()
latencies, start, last = [], time.monotonic(), 0
while True:
    latencies.append(client.latency())
    time.sleep(0.005)
    if time.monotonic() - last > 0.2:
        last = time.monotonic()
        if watcher.request("task.get", {"id": identifier})["state"] == "completed": break
        if last - start > 300: sys.exit("the large file does not come")
found["work"] = share(latencies, 0.99)
found["workMost"] = max(latencies)
found["rate"] = gibibytes * 1024 / (time.monotonic() - start)
found["active"] = client.request("daemon.status")["tasks"]["active"]

clients = []
for number in range(400):
    connection = connect()
    # One half sends half a line; the other asks for much, and reads none of it.
    if number % 2: connection.sendall(b'{"jsonrpc":"2.0","id":1,"method":"task.li')
    else:
        connection.setblocking(False)
        try: connection.sendall(b'{"jsonrpc":"2.0","id":1,"method":"task.list"}\n' * 20)
        except BlockingIOError: pass
    clients.append(connection)
stuck = connect()
stuck.sendall(b'{"jsonrpc":"2.0","id":1,"method":"events.subscribe","params":{"after":0,"types":["added","started","progress"]}}\n')
time.sleep(0.5)
latencies = []
for _ in range(1000):
    latencies.append(client.latency())
    time.sleep(0.005)
found["besieged"] = share(latencies, 0.99)
found["besiegedMost"] = max(latencies)
with open(figures, "w") as file:
    for name, value in found.items(): print(name, f"{value:.2f}", file=file)
CLIENT

figure() { awk -v name="$1" '$1 == name { print $2 }' "$place/figures"; }
mkdir -p "$(dirname "$report")"
{
    echo "**The control socket**"
    echo
    echo "| what | | aim |"
    echo "|---|---:|---:|"
    echo "| calls over one pipelined connection at rest | $(figure calls | cut -d . -f 1) a second | 10,000 |"
    echo "| \`dlctl list --limit 50\` from exec to exit, $active tasks | $(figure list) ms | 25 ms |"
    echo "| \`daemon.status\` while $gibibytes GiB arrive at $(figure rate | cut -d . -f 1) MiB/s beside $(figure active | cut -d . -f 1) active tasks: 99th percentile | $(figure work) ms | 10 ms |"
    echo "| the same, the longest | $(figure workMost) ms | |"
    echo "| \`daemon.status\` with 400 slow clients and a stuck subscriber: 99th percentile | $(figure besieged) ms | 50 ms |"
    echo "| the same, the longest | $(figure besiegedMost) ms | |"
} | tee "$report"
[ -z "${CHECK:-}" ] || awk '
    $1 == "calls" && $2 < 10000 || $1 == "list" && $2 > 25 || $1 == "work" && $2 > 10 || $1 == "besieged" && $2 > 50 {
        print "not met: " $0; bad = 1
    }
    END { exit bad }' "$place/figures"
