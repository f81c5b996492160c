#!/usr/bin/env bash
# Builds the documentation of the libraries Transfer and ControlClient into .build-docs/NAME.doccarchive, and checks it:
# every public symbol has a comment, every example compiles, and docc has no warning.
#
# Reads the modules that a plain debug build makes: a build with other flags would compile everything again.
# PACKAGE names another package to build the libraries from.
set -euo pipefail
cd "$(dirname "$0")/../.."

swift=${SWIFT:-swift}
package=${PACKAGE:-.}
out=.build-docs

rm -rf "$out"

# Examples of Transfer use StubTransport too, which is built upon Transfer.
"$swift" build --package-path "$package" --target StubTransport
"$swift" build --package-path "$package" --target ControlClient
bin=$("$swift" build --package-path "$package" --show-bin-path)
triple=$("$swift" -print-target-info | jq -r .target.triple)
module=(-I "$bin/Modules")
# The C modules of ours, built or of the system, and those of dependencies, whose own headers bring their map.
for map in "$bin"/*.build/module.modulemap "$package"/Sources/*/module.modulemap \
    "$package"/.build/checkouts/*/Sources/*/include/module.modulemap; do
    [ ! -e "$map" ] || module+=(-Xcc "-fmodule-map-file=$map")
done

compile() { "${SWIFTC:-swiftc}" -typecheck -swift-version 6 -warnings-as-errors -target "$triple" "${module[@]}" "$@"; }

# document NAME EXPORTED [SOURCES]: EXPORTED are the modules that NAME exports, separated by commas; SOURCES limits
# check.sh.
document() {
    local name=$1 exported=$2 sources=${3:-.} catalog=Sources/$1/$1.docc part=$out/$1
    mkdir -p "$part/symbols" "$part/examples"
    "$swift" symbolgraph-extract -module-name "$name" -target "$triple" "${module[@]}" -output-dir "$part/symbols" \
        -minimum-access-level public -skip-synthesized-members \
        -experimental-allowed-reexported-modules="$exported"
    Tests/Documentation/check.sh "$part/symbols" "$catalog" "$sources"
    Tests/Documentation/examples.sh "$catalog" "$part/examples"
    compile "$part/examples/articles.swift"
    for step in "$catalog"/Resources/*.swift; do compile -parse-as-library "$step"; done
    docc convert "$catalog" --additional-symbol-graph-dir "$part/symbols" --fallback-display-name "$name" \
        --fallback-bundle-identifier "org.dld.$name" --warnings-as-errors --output-path "$out/$name.doccarchive"
    echo "$out/$name.doccarchive"
}

document Transfer HTTPCaching,HTTPMessages
# The models that an app meets. The parameters and results of the protocol are described in docs/protocol.md.
models='Task(Status|Event|Filter|State|Failure|ID|Specification)|EventFilter'
document ControlClient ControlProtocol,TaskModel "Sources/(ControlClient/|TaskModel/[A-Za-z]+/($models)\.swift)"
