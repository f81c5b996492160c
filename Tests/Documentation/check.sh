#!/usr/bin/env bash
# check.sh GRAPHS CATALOG [SOURCES]: ends with 1 if a public symbol in the symbol graphs has no documentation comment, or if one
# at the top level is in no group of the catalog's first page; says which. SOURCES is a regular expression that limits
# the check to symbols of matching source files.
#
# A requirement of a protocol that is met without a word inherits the protocol's comment; what the compiler made has no
# place in the sources and is passed over.
set -euo pipefail

sources=${3:-.}
first=$2/$(basename "$2" .docc).md
faults=$(
    jq -r --arg sources "$sources" '.symbols[] | select(.docComment == null and .location != null and (.location.uri | test($sources)))
        | "\(.location.uri | sub("^file://"; "")):\(.location.position.line + 1): "
            + "\(.pathComponents | join(".")) has no comment"' "$1"/*.symbols.json | sort -u
    comm -23 <(jq -r --arg sources "$sources" '.symbols[] | select(.pathComponents | length == 1)
        | select(.location == null or (.location.uri | test($sources))) | .pathComponents[0]' \
        "$1/$(basename "$2" .docc).symbols.json" | sort -u) <(sed -n 's/^- ``\(.*\)``$/\1/p' "$first" | sort -u) \
        | sed "s|.*|$first: no group has &|"
)
[ -z "$faults" ] || {
    printf '%s\n' "$faults" >&2
    exit 1
}
