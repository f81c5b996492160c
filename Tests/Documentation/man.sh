#!/usr/bin/env bash
# Makes the manual pages of the debug build in .build-docs/man, and checks them: mandoc has no warning, every command
# has a section, every option is named there, and every heading of the sources of section 5 is in its page.
set -euo pipefail
cd "$(dirname "$0")/../.."

swift=${SWIFT:-swift}
"$swift" build --product dlctl
"$swift" build --product dld
bin=$("$swift" build --show-bin-path)
out=.build-docs/man
docs/man/pages.sh "$bin" "$out"
mandoc -T lint -W warning "$out/dlctl.1" "$out/dld.8" "$out/dld.yaml.5" "$out/dld-queue.5"

faults=0
fail() {
    printf 'manual: %s\n' "$*" >&2
    faults=1
}
for page in dlctl.1 dld.8; do
    text=$(MANWIDTH=200 mandoc -T ascii -O width=200 "$out/$page" | col -b)
    while read -r option; do
        grep -q -- "--$option\b" <<<"$text" || fail "$page does not name --$option"
    done < <("$bin/${page%.*}" --experimental-dump-help | jq -r '.. | .names? // empty | .[] | select(.kind == "long").name' | sort -u)
done
while read -r command; do
    grep -q "^\.Ss $command\$" "$out/dlctl.1" || fail "dlctl.1 has no section $command"
done < <("$bin/dlctl" --experimental-dump-help | jq -r 'def leaves($w): .subcommands[]? | select(.commandName != "help")
    | ($w + [.commandName]) as $n | if [.subcommands[]? | select(.commandName != "help")] == [] then $n | join(" ")
      else leaves($n) end; .command | leaves([])')
for page in configuration.md:dld.yaml.5 queue-files.md:dld-queue.5; do
    while read -r heading; do
        grep -qiF -- "$heading" "$out/${page#*:}" || fail "${page#*:} lacks the section $heading"
    done < <(sed -e '/^```/,/^```/d' -n -e 's/^## //p' "docs/${page%:*}" | tr -d '`' | sed 's/-/\\-/g')
done
# Each reference is to one of these pages, and no link of the sources is left without its target.
for page in "$out"/*.[158]; do
    while read -r name section; do
        [ -e "$out/$name.$section" ] || fail "${page##*/} refers to $name($section)"
    done < <(sed -n -e 's/^\.Xr \([^ ]*\) \([0-9]\).*/\1 \2/p' "$page"
        grep -o '\\fB[a-z.-]*\\fR([0-9])' "$page" | sed -e 's/\\fB\(.*\)\\fR(\(.\))/\1 \2/')
    grep -q -e 'SEE ALSO' "$page" || fail "${page##*/} refers to no other page"
done
exit "$faults"
