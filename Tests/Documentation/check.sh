#!/usr/bin/env bash
# check.sh GRAPHS CATALOG: ends with 1 if a public symbol in the symbol graphs has no documentation comment, or if one
# at the top level is in no group of the catalog's first page; says which.
#
# A requirement of a protocol that is met without a word inherits the protocol's comment; what the compiler made has no
# place in the sources and is passed over.
set -euo pipefail

faults=$(
    jq -r '.symbols[] | select(.docComment == null and .location != null)
        | "\(.location.uri | sub("^file://"; "")):\(.location.position.line + 1): "
            + "\(.pathComponents | join(".")) has no comment"' "$1"/*.symbols.json | sort -u
    comm -23 <(jq -r '.symbols[] | select(.pathComponents | length == 1) | .pathComponents[0]' \
        "$1/Transfer.symbols.json" | sort -u) <(sed -n 's/^- ``\(.*\)``$/\1/p' "$2/Transfer.md" | sort -u) \
        | sed "s|.*|$2/Transfer.md: no group has &|"
)
[ -z "$faults" ] || {
    printf '%s\n' "$faults" >&2
    exit 1
}
