#!/usr/bin/env bash
# examples.sh CATALOG DIRECTORY: makes DIRECTORY/articles.swift of the Swift in the catalog's articles. Each example
# becomes a function whose parameters are what examples take for granted; errors name the article and its line.
#
# The last step of the tutorial has to be the program that Tests/Consumer builds and runs.
set -euo pipefail

{
    printf 'import %s\n' Dispatch Foundation HTTPTypes StubTransport Transfer
    for article in "$1"/*.md; do
        awk -v file="$PWD/$article" '
            /^```swift$/ {
                inside = 1
                printf "func example%d_%d(\n", ++count, NR
                print "    manager: SessionManager, target: DownloadTarget, directory: Directory, url: String"
                print ") async throws {"
                printf "#sourceLocation(file: \"%s\", line: %d)\n", file, NR + 1
                next
            }
            /^```$/ && inside { inside = 0; print "#sourceLocation()"; print "}"; next }
            inside && !/^import / { print }' "$article" | sed "s/^func example/func $(basename "$article" .md)/"
    done
} >"$2/articles.swift"

cmp "$1/Resources/Fetch-5.swift" Tests/Consumer/Sources/Fetch/Fetch.swift
