#!/usr/bin/env bash
# pages.sh PROGRAMS DIRECTORY: writes dlctl.1, dld.8, dld.yaml.5 and dld-queue.5 to DIRECTORY.
#
# PROGRAMS is the directory of the built programs: their pages are made of their own help. The pages of section 5 are
# made of docs/configuration.md and docs/queue-files.md. Needs jq and lowdown.
set -euo pipefail
programs=$1
out=$2
docs=$(cd "$(dirname "$0")/.." && pwd)
date=$(LC_ALL=C date --utc --date="@${SOURCE_DATE_EPOCH:-$(date +%s)}" '+%B %-d, %Y')
version=$("$programs/dlctl" --version | sed -n '1s/.* //p')
mkdir -p "$out"

# program NAME SECTION
program() {
    "$programs/$1" --experimental-dump-help | jq --raw-output --from-file "$docs/man/help.jq" --arg section "$2" \
        --arg date "$date" --arg version "$version" --rawfile rest "$docs/man/$1.mdoc" >"$out/$1.$2"
}

# article FILE NAME SUMMARY: the headings of an article become the sections of a page. Links become names of pages, or
# of files of the documentation.
article() {
    {
        printf '# NAME\n\n%s - %s\n\n# DESCRIPTION\n\n' "$2" "$3"
        sed -e 1d -e '/^```/,/^```/b' -e 's/^##\(#*\) /#\1 /' \
            -e 's/\[\([^]]*\)\](commands\.md[^)]*)/\1 (**dlctl**(1))/g' \
            -e 's/\[\([^]]*\)\](configuration\.md[^)]*)/\1 (**dld.yaml**(5))/g' \
            -e 's/\[\([^]]*\)\](queue-files\.md[^)]*)/\1 (**dld-queue**(5))/g' \
            -e 's/\[\([^]]*\)\](\([a-z-]*\.md\)[^)]*)/\1 (docs\/\2)/g' -e 's/\[\([^]]*\)\]([^)]*)/\1/g' "$docs/$1"
        printf '\n# SEE ALSO\n\n**dlctl**(1), **dld**(8), **dld.yaml**(5), **dld-queue**(5)\n'
    } | lowdown -s -Tman --nroff-nolinks -M "title=$2" -M section=5 -M "date=$date" -M "source=dld $version" |
        tidied "$2 - $3" >"$out/$2.5"
}

# tidied LINE: headings on one line without a paragraph after them, the font of code that mandoc knows, and a dash that
# indexers know in LINE, which is that of the section NAME.
tidied() {
    awk -v name="$1" '
        heading { print heading " " $0; heading = ""; isFirst = 1; next }
        /^\.S[HS]$/ { heading = $0; next }
        isFirst && /^\.[LP]P$/ { isFirst = 0; next }
        { isFirst = 0; gsub(/\\fC/, "\\fB") }
        $0 == name { sub(/ - /, " \\- ") }
        { print }'
}

program dlctl 1
program dld 8
article configuration.md dld.yaml 'configuration of the download daemon dld'
article queue-files.md dld-queue 'queue files and other lists of tasks for dlctl'
