#!/usr/bin/env bash
# Builds the programs Fetch and Mirror, users of the library from outside of the tree, and tries them against an nginx of
# their own. Fetch: a server that is not ready at first, a download that Ctrl-C stops, and a second run that fetches the
# rest alone. Mirror: 500 files from an index, a kill -9 in the middle, and a second run that fetches the rest.
# Shows what the program prints, and ends with 1 where that is not what it should be.
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH=$PATH:/usr/sbin:/sbin
swift=${SWIFT:-swift}
build=("$swift" build --package-path Tests/Consumer --scratch-path "${CONSUMER_BUILD:-.build-consumer}")
place=$(mktemp -d "${TMPDIR:-/tmp}/dld-consumer-XXXXXX")
nginx= fetch=

clean_up() {
    trap - EXIT INT TERM HUP
    for child in $fetch $nginx; do kill -TERM "$child" 2>/dev/null && wait "$child" 2>/dev/null || true; done
    rm -rf "$place"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

fail() {
    printf 'consumer: %s\n' "$*" >&2
    tail -n 20 "$place/errors" "$place/nginx/error.log" >&2 2>/dev/null || true
    exit 1
}
# waits_for WHAT COMMAND…: until the command succeeds, for 30 s at most.
waits_for() {
    local what=$1
    shift
    for _ in {1..600}; do
        if "$@" 2>/dev/null; then return; fi
        sleep 0.05
    done
    fail "$what"
}
expects() {
    cat "$place/output"
    diff "$place/output" - >&2 || fail 'the program printed something else'
}

"${build[@]}"
program=$("${build[@]}" --show-bin-path)/Fetch
mirror=$("${build[@]}" --show-bin-path)/Mirror

size=$((6 << 20))
mkdir -p "$place/nginx/files" "$place/downloads"
head -c $size /dev/urandom >"$place/nginx/files/big.bin"
digest=$(sha256sum <"$place/nginx/files/big.bin" | cut -d ' ' -f 1)
# Below the ports that the kernel gives to outgoing connections.
while port=$((20000 + RANDOM % 12000)) && (: </dev/tcp/127.0.0.1/$port) 2>/dev/null; do :; done
[ "$(id -u)" -ne 0 ] || echo 'user root;' >"$place/nginx/nginx.conf"
cat >>"$place/nginx/nginx.conf" <<CONF
daemon off;
pid $place/nginx/pid;
error_log $place/nginx/error.log;
events {}
http {
    log_format sent '\$uri \$status \$http_range \$body_bytes_sent';
    access_log $place/nginx/access.log sent;
    client_body_temp_path $place/nginx/body;
    proxy_temp_path $place/nginx/proxy;
    fastcgi_temp_path $place/nginx/fastcgi;
    uwsgi_temp_path $place/nginx/uwsgi;
    scgi_temp_path $place/nginx/scgi;
    server {
        listen 127.0.0.1:$port;
        root $place/nginx/files;
        default_type application/octet-stream;
        # 503 until there is a release to tell of.
        location = /release.json { error_page 404 = @busy; }
        location @busy { add_header Retry-After 1 always; return 503; }
        location = /big.bin { limit_rate_after 2m; limit_rate 1m; }
        location = /mirror/zz/large.bin { limit_rate 512k; }
    }
}
CONF
nginx -p "$place/nginx" -e "$place/nginx/error.log" -c "$place/nginx/nginx.conf" &
nginx=$!
waits_for 'nginx does not answer' eval "(: </dev/tcp/127.0.0.1/$port)"

index=http://127.0.0.1:$port/release.json
release() {
    printf '{"file": "big.bin", "url": "http://127.0.0.1:%s/big.bin", "sha256": "%s"}' "$port" "$digest" \
        >"$place/release.json"
    mv "$place/release.json" "$place/nginx/files/release.json"
}
asked() { grep -q "$1" "$place/nginx/access.log"; }
has_part() { [ "$(stat -c %s "$place/downloads/.big.bin.part")" -ge $((1 << 20)) ]; }

echo '--- the server is busy at first; then Ctrl-C after the first bytes'
# Job control gives the program back the SIGINT that a script's background jobs ignore.
set -m
"$program" "$index" "$place/downloads" >"$place/output" 2>"$place/errors" &
fetch=$!
set +m
waits_for 'the program does not ask' asked '/release.json 503'
release
waits_for 'there is no part file' has_part
kill -INT "$fetch"
code=0
wait "$fetch" || code=$?
fetch=
[ "$code" -eq 1 ] || fail "the program that was stopped ended with $code"
asked '/release.json 200' || fail 'the program did not ask a second time'
expects <<'OUTPUT'
cancelled; the next run goes on where this one stopped
OUTPUT
[ -s "$place/downloads/.big.bin.resume" ] || fail 'there is no note of what came'
[ ! -e "$place/downloads/big.bin" ] || fail 'half a file has its final name'

echo '--- a second run'
"$program" "$index" "$place/downloads" >"$place/output" 2>"$place/errors" || fail "the second run ended with $?"
expects <<OUTPUT
big.bin: $size bytes, verified: true
OUTPUT
cmp "$place/nginx/files/big.bin" "$place/downloads/big.bin" || fail 'the file is not what the server holds'
[ -z "$(find "$place/downloads" -name '.*' -type f)" ] || fail 'something is left over'
waits_for 'the server notes nothing' asked '/big.bin 206 bytes=[1-9]'

echo '--- a mirror of 500 files, killed in the middle'
[ "$(wc -l <Tests/Consumer/Sources/Mirror/Mirror.swift)" -le 50 ] || fail 'the program has more than 50 lines'
mirrored=$place/nginx/files/mirror
for folder in {0..9} zz; do mkdir -p "$mirrored/$folder"; done
for number in {1..499}; do head -c $((number * 97)) /dev/urandom >"$mirrored/$((number % 10))/file $number.bin"; done
head -c $((32 << 20)) /dev/urandom >"$mirrored/zz/large.bin"
(cd "$mirrored" && find . -name '*.bin' | cut -c 3- | sort -r | xargs -d '\n' sha256sum >"$place/index" && mv "$place/index" index)
: >"$place/nginx/access.log"
"$mirror" "http://127.0.0.1:$port/mirror/index" "$place/mirror" >"$place/output" 2>"$place/errors" &
fetch=$!
waits_for 'the large file has no resume data' [ -s "$place/mirror/zz/.large.bin.resume" ]
waits_for 'few files are there' eval "[ \$(find '$place/mirror' -name 'file*' | wc -l) -ge 100 ]"
kill -KILL "$fetch"
wait "$fetch" 2>/dev/null || true
fetch=
[ ! -e "$place/mirror/zz/large.bin" ] || fail 'the large file is complete already'
# What a kill right after the end of a download leaves.
finished=$(find "$place/mirror" -name 'file*' -print -quit)
echo 'resume data' >"$(dirname "$finished")/.${finished##*/}.resume"
echo 'newer resume data' >"$(dirname "$finished")/.${finished##*/}.resume.new"
"$mirror" "http://127.0.0.1:$port/mirror/index" "$place/mirror" >"$place/output" 2>"$place/errors" ||
    fail "the second run of the mirror ended with $?"
grep -q '^500 files, each as its digest says$' "$place/output" || fail 'the mirror printed something else'
(cd "$place/mirror" && sha256sum --check --quiet "$mirrored/index") || fail 'a mirrored file is wrong'
left=$(find "$place/mirror" -name '.*' -type f)
[ -z "$left" ] || fail "the mirror left something over: $left"
waits_for 'the server notes no range' asked '/mirror/zz/large.bin 206 bytes=[1-9]'
[ "$(grep -c '/mirror/.* 200 ' "$place/nginx/access.log")" -lt 600 ] || fail 'files were fetched twice'
tail -n 1 "$place/output"

echo '--- what the server was asked for'
grep -v "/mirror/[0-9]" "$place/nginx/access.log"
