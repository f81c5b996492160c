#!/usr/bin/env bash
# Compares dld with curl, wget2, axel, aria2c and aria2-next, as far as they are installed:
# bench.sh [large|tls|small|all]
#
#   large  one file of 2 GiB
#   tls    the same by HTTPS
#   small  10,000 files of 16 KiB, 32 at once
#
# All runs of one comparison are interleaved, each in a fresh directory of one file system, and judged by their
# medians: between two invocations the same machine may differ threefold, so only the ratios mean anything. What a
# tool brought is compared with the source after each run, or the run does not count.
#
# In a virtual machine memory that was freed a moment ago is much faster to have than what its host has taken back, and
# whoever follows a large file finds all of that one's: before each the machine comes to rest.
#
# ext4 passes over inodes that were deleted within the last minutes, and everyone creates files at a fraction of the
# speed then: small files are deleted at the very end, and the next invocation had better be five minutes later.
#
# dld is timed from `dlctl add` to the end of its wait, when every file is durable; a peer as it is, and again with
# a sync of what it wrote.
#
# Beside the times stands the processor time a GiB: for dld that of all of the daemon's threads and of dlctl.
#
# Beside the large file stands what the way of its bytes costs the library alone: calls of malloc and its kin, and of
# mutexes, by the thread that reads from the socket, between the first and the last 16 MiB.
#
# RUNS (5), DLD_BIN_DIR (.build/release), BENCH_DIR (where to work; a disk with room), BENCH_REPORT (Markdown).
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C PATH=$PATH:$PWD/.build/peers/bin:/usr/sbin:/sbin PYTHONPATH=$PWD/.build/peers

what=${1:-all}
runs=${RUNS:-5}
case $what in large | tls | small | all) ;; *)
    echo "usage: $0 [large|tls|small|all]" >&2
    exit 64
    ;;
esac
bin=$(cd "${DLD_BIN_DIR:-.build/release}" && pwd)
place=$(mktemp -d "${BENCH_DIR:-/var/tmp}/dld-bench-XXXXXX")
report=${BENCH_REPORT:-.build/bench.md}
large_size=$((${LARGE_MIB:-2048} * 1048576))
small_count=${SMALL_COUNT:-10000}
limit=${TIME_LIMIT:-300} # seconds a run
rest=5 # seconds before the run of a large file
daemon= nginx=

clean_up() {
    trap - EXIT INT TERM HUP
    stop_daemon
    if [ -n "$nginx" ]; then kill -TERM "$nginx" 2>/dev/null && wait "$nginx" 2>/dev/null || true; fi
    rm -rf "$place"
}
stop_daemon() {
    if [ -n "$daemon" ]; then kill -TERM "$daemon" 2>/dev/null && wait "$daemon" 2>/dev/null || true; fi
    daemon=
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
fail() {
    echo "bench: $*" >&2
    tail -n 20 "$place"/*.log >&2 2>/dev/null || true
    exit 1
}

start_nginx() {
    # Below the ports that the kernel gives to outgoing connections, which could hold one that nobody listens on.
    while port=$((20000 + RANDOM % 12000)) && (: </dev/tcp/127.0.0.1/$port) 2>/dev/null; do :; done
    while tls_port=$((20000 + RANDOM % 12000)) && [ $tls_port -ne $port ] \
        && (: </dev/tcp/127.0.0.1/$tls_port) 2>/dev/null; do :; done
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 \
        -keyout "$place/key.pem" -out "$place/ca.pem" 2>/dev/null
    [ "$(id -u)" -ne 0 ] || echo 'user root;' >"$place/nginx.conf"
    cat >>"$place/nginx.conf" <<CONF
daemon off;
worker_processes 2;
pid $place/nginx.pid;
error_log $place/nginx.log;
events { worker_connections 2048; }
http {
    access_log off;
    sendfile on;
    keepalive_requests 100000;
    client_body_temp_path $place/tmp-body;
    proxy_temp_path $place/tmp-proxy;
    fastcgi_temp_path $place/tmp-fastcgi;
    uwsgi_temp_path $place/tmp-uwsgi;
    scgi_temp_path $place/tmp-scgi;
    server { listen 127.0.0.1:$port backlog=1024; root $place/source; }
    server {
        listen 127.0.0.1:$tls_port ssl backlog=1024;
        root $place/source;
        ssl_certificate $place/ca.pem;
        ssl_certificate_key $place/key.pem;
    }
}
CONF
    nginx -p "$place" -e "$place/nginx.log" -c "$place/nginx.conf" &
    nginx=$!
    for _ in {1..100}; do
        (: </dev/tcp/127.0.0.1/$port) 2>/dev/null && return
        sleep 0.05
    done
    fail 'nginx does not answer'
}

# start_daemon CONFIGURATION
start_daemon() {
    echo "$1" >"$place/dld.yaml"
    mkdir -p "$place/runs"
    "$bin/dld" --config "$place/dld.yaml" --socket "$place/dld.sock" --state-directory "$place/state" \
        --download-directory "$place/runs" --log-level error 2>>"$place/dld.log" &
    daemon=$!
    for _ in {1..200}; do
        dlctl status >/dev/null 2>&1 && return
        sleep 0.05
    done
    fail 'the daemon does not answer'
}
dlctl() { "$bin/dlctl" --socket "$place/dld.sock" "$@"; }

# run_large TOOL DIRECTORY: brings large.bin into DIRECTORY. Those that can are given four connections, as axel takes.
run_large() {
    local url=$server/large.bin
    case $1 in
        dld) "$bin/dlctl" --socket "$place/dld.sock" add --wait --directory "$2" "$url" ;;
        curl) curl -q -sS --cacert "$place/ca.pem" -o "$2/large.bin" "$url" ;;
        wget2) wget2 --no-config -q --ca-certificate="$place/ca.pem" -O "$2/large.bin" "$url" ;;
        axel) axel -q -k -o "$2/large.bin" "$url" ;;
        aria2c) aria2c --no-conf -q -x4 -s4 --ca-certificate="$place/ca.pem" -d "$2" -o large.bin "$url" ;;
        aria2-next) aria2-next --no-conf -q -x4 -s4 --ca-certificate="$place/ca.pem" -d "$2" -o large.bin "$url" ;;
    esac
}
run_tls() {
    server=$tls_server run_large "$@"
}

# run_small TOOL DIRECTORY: brings all small files into DIRECTORY. The lists are made before the clock runs.
run_small() {
    case $1 in
        dld) "$bin/dlctl" --socket "$place/dld.sock" add --wait --directory "$2" --input "$place/small.urls" ;;
        curl) (cd "$2" && curl -q -sS -Z --parallel-max 32 -K "$place/small.curl") ;;
        wget2) wget2 --no-config -q --max-threads=32 -P "$2" -i "$place/small.urls" ;;
        aria2c) aria2c --no-conf -q -j32 -d "$2" -i "$place/small.urls" ;;
    esac
}
export -f run_large run_tls run_small
export bin place

chunks() {
    mkdir "$place/chunks"
    "$bin/TransferLoad" file "$server/large.bin" "$place/chunks" >"$place/chunks.txt"
    cmp -s "$place/source/large.bin" "$place/chunks/file" || fail "TransferLoad fetched something else"
    rm -r "$place/chunks"
    awk '{ of[$1] = $2 }
        END { printf "\nThe library on its own: %d reads from the socket and %d writes to the file took %d allocations " \
            "and %d mutexes.\n", of["reads"], of["writes"], of["allocations"], of["mutexes"] }' "$place/chunks.txt"
}

seconds() { awk -v from="$1" -v to="$2" 'BEGIN { printf "%.3f", to - from }'; }

# Seconds of processor that ended children of this shell and the daemon have used, in $used: a subshell would tell of
# its own children.
processor_time() {
    local ticks=0
    [ -z "$daemon" ] || ticks=$(awk '{ print $14 + $15 }' "/proc/$daemon/stat")
    times >"$place/times"
    used=$(awk -v ticks="$ticks" -v hertz="$(getconf CLK_TCK)" 'NR == 2 {
        split($1, user, /[ms]/); split($2, system_, /[ms]/)
        printf "%.3f", user[1] * 60 + user[2] + system_[1] * 60 + system_[2] + ticks / hertz
    }' "$place/times")
}

# measure KIND TOOL ROUND: one run into a directory of its own, its two times appended to KIND.times.
measure() {
    local kind=$1 tool=$2 directory=$place/runs/$1-$2-$3 start plain synced spent used
    mkdir -p "$directory"
    sync -f "$place"
    [ "$kind" = small ] || sleep "$rest"
    processor_time
    spent=$used
    start=$EPOCHREALTIME
    timeout "$limit" bash -c "run_$kind $tool '$directory'" >"$place/tool.log" 2>&1 \
        || fail "$tool ended with $? in round $3"
    plain=$EPOCHREALTIME
    processor_time
    spent=$(seconds "$spent" "$used")
    # What dld says is complete is durable already; a peer's files still have to reach the disk.
    if [ "$tool" != dld ]; then
        if [ "$kind" != small ]; then sync "$directory/large.bin"; else sync -f "$directory"; fi
    fi
    synced=$EPOCHREALTIME
    if [ "$kind" != small ]; then
        cmp "$place/source/large.bin" "$directory/large.bin" || fail "$tool brought other bytes"
        # Kept to the end they would fill the disk; a single inode does not matter.
        rm "$directory/large.bin"
    else
        diff -rq "$place/source/small" "$directory" || fail "$tool brought other bytes"
    fi
    plain=$(seconds "$start" "$plain") synced=$(seconds "$start" "$synced")
    [ "$tool" != dld ] || synced=$plain
    echo "$tool $plain $synced $spent" >>"$place/$kind.times"
    printf '  round %s  %-10s %8s s   synced %8s s   processor %8s s\n' "$3" "$tool" "$plain" "$synced" "$spent"
}

# compare KIND TOOL…: in every round another order, drawn by lot, so that none always follows the same one.
compare() {
    local kind=$1 round tool
    shift
    for ((round = 1; round <= runs; round++)); do
        for tool in $(shuf -e "$@"); do measure "$kind" "$tool" "$round"; done
    done
}

# table KIND TITLE: medians and ratios as Markdown.
table() {
    printf '\n**%s** (medians of %s runs)\n\n' "$2" "$runs"
    awk -v gib="$3" '
        function median(list, count,   i, j, swap) {
            for (i = 2; i <= count; i++)
                for (j = i; j > 1 && list[j] < list[j - 1]; j--) {
                    swap = list[j]; list[j] = list[j - 1]; list[j - 1] = swap
                }
            return count % 2 ? list[(count + 1) / 2] : (list[count / 2] + list[count / 2 + 1]) / 2
        }
        { if (!($1 in count)) order[++tools] = $1
          count[$1]++; plain[$1, count[$1]] = $2 + 0; synced[$1, count[$1]] = $3 + 0
          spent[$1, count[$1]] = $4 + 0 }
        END {
            for (t = 1; t <= tools; t++) {
                name = order[t]
                for (i = 1; i <= count[name]; i++) { a[i] = plain[name, i]; b[i] = synced[name, i]; c[i] = spent[name, i] }
                asis[name] = median(a, count[name]); safe[name] = median(b, count[name])
                work[name] = median(c, count[name]) / gib
            }
            print "| tool | as it is | dld / tool | with sync | dld / tool | processor a GiB |"
            print "|---|---:|---:|---:|---:|---:|"
            printf "| dld (durable) | %.2f s | | %.2f s | | %.2f s |\n", asis["dld"], asis["dld"], work["dld"]
            for (t = 1; t <= tools; t++) {
                name = order[t]
                if (name == "dld") continue
                printf "| %s | %.2f s | %.2f | %.2f s | %.2f | %.2f s |\n", name, asis[name],
                    asis["dld"] / asis[name], safe[name], asis["dld"] / safe[name], work[name]
                if (!quick || asis[name] < asis[quick]) quick = name
                if (!thrifty || work[name] < work[thrifty]) thrifty = name
                if (!best || safe[name] < safe[best]) best = name
            }
            if (best) printf "\ndld takes %.2f times as long as the best peer with sync, %s; %.2f times as long as " \
                "the best as it is, %s; and %.2f times the processor time of the thriftiest, %s.\n",
                asis["dld"] / safe[best], best, asis["dld"] / asis[quick], quick, work["dld"] / work[thrifty], thrifty
        }' "$place/$1.times"
}

peers=()
for tool in curl wget2 axel aria2c aria2-next; do ! command -v "$tool" >/dev/null || peers+=("$tool"); done
mkdir -p "$place/source/small"
: >"$place/report"
start_nginx
server=http://127.0.0.1:$port tls_server=https://127.0.0.1:$tls_port
export server tls_server
large_gib=$(awk -v size="$large_size" 'BEGIN { print size / 2 ^ 30 }')
small_gib=$(awk -v count="$small_count" 'BEGIN { print count * 16384 / 2 ^ 30 }')

if [ "$what" != small ]; then
    echo "One file of $((large_size / 1048576)) MiB:"
    head -c "$large_size" /dev/urandom >"$place/source/large.bin"
    sync -f "$place"
    cat "$place/source/large.bin" >/dev/null
    start_daemon "tls: {ca-file: $place/ca.pem}"
    if [ "$what" != tls ]; then
        compare large dld "${peers[@]}"
        table large "One file of $((large_size / 1048576)) MiB" "$large_gib" >>"$place/report"
        chunks >>"$place/report"
    fi
    if [ "$what" != large ]; then
        echo 'By HTTPS:'
        compare tls dld "${peers[@]}"
        table tls "One file of $((large_size / 1048576)) MiB by HTTPS" "$large_gib" >>"$place/report"
    fi
    stop_daemon
    rm "$place/source/large.bin"
fi

if [ "$what" = small ] || [ "$what" = all ]; then
    echo "$small_count files of 16 KiB, 32 at once:"
    head -c $((small_count * 16384)) /dev/urandom \
        | split -a 5 -d -b 16384 - "$place/source/small/f"
    find "$place/source/small" -type f -printf '%f\n' | sort >"$place/names"
    awk -v url="$server/small/" '{ print url $0 }' "$place/names" >"$place/small.urls"
    awk -v url="$server/small/" '{ print "url = " url $0; print "output = " $0 }' "$place/names" >"$place/small.curl"
    sync -f "$place"
    start_daemon 'limits: {active-tasks: 32, connections-per-host: 32}'
    many=()
    # axel has no way to fetch many files at once; aria2-next gives what comes as text names with an ending of its own,
    # and told the names it takes more than five minutes.
    for tool in "${peers[@]}"; do [[ "$tool" = axel || "$tool" = aria2-next ]] || many+=("$tool"); done
    compare small dld "${many[@]}"
    stop_daemon
    table small "$small_count files of 16 KiB, 32 at once" "$small_gib" >>"$place/report"
fi

{
    cat "$place/report"
    printf '\n%s cores, %s, Linux %s; nginx with two workers on the same machine. ' \
        "$(nproc)" "$(findmnt -n -o FSTYPE -T "$place")" "$(uname -r)"
    printf 'Made by `make bench`. A peer "with sync" is timed until its files are on the disk, where dld’s always are.\n'
} | tee "$report"
