#!/usr/bin/env bash
# examples.sh CATALOG DIRECTORY: makes DIRECTORY/articles.swift of the Swift in the catalog's articles. Each example
# becomes a function whose parameters are what examples take for granted; errors name the article and its line.
#
# The last step of the tutorial has to be the program that Tests/Consumer builds and runs.
set -euo pipefail

case $(basename "$1") in
Transfer.docc)
    modules=(Dispatch Foundation HTTPTypes StubTransport Transfer)
    parameters='manager: SessionManager, target: DownloadTarget, directory: Directory, url: String'
    program=Fetch-5.swift
    ;;
*)
    modules=(ControlClient)
    parameters='url: String, path: String'
    program=Episodes-3.swift
    ;;
esac
{
    printf 'import %s\n' "${modules[@]}"
    for article in "$1"/*.md; do
        awk -v file="$PWD/$article" -v parameters="$parameters" '
            /^```swift$/ {
                inside = 1
                printf "func example%d_%d(\n", ++count, NR
                print "    " parameters
                print ") async throws {"
                printf "#sourceLocation(file: \"%s\", line: %d)\n", file, NR + 1
                next
            }
            /^```$/ && inside { inside = 0; print "#sourceLocation()"; print "}"; next }
            inside && !/^import / { print }' "$article" | sed "s/^func example/func $(basename "$article" .md)/"
    done
} >"$2/articles.swift"

cmp "$1/Resources/$program" "Tests/Consumer/Sources/${program%-*}/${program%-*}.swift"
