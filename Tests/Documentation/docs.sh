#!/usr/bin/env bash
# Builds the documentation of the library Transfer into .build-docs/Transfer.doccarchive, and judges it: every public
# symbol has a comment, every example compiles, and docc has nothing to warn of.
#
# Reads the module that a plain debug build makes: a build with other flags would compile everything again.
# PACKAGE names another package to build the library from.
set -euo pipefail
cd "$(dirname "$0")/../.."

swift=${SWIFT:-swift}
package=${PACKAGE:-.}
catalog=Sources/Transfer/Transfer.docc
out=.build-docs

rm -rf "$out"
mkdir -p "$out/symbols" "$out/examples"

# Examples use StubTransport too, which is built upon Transfer.
"$swift" build --package-path "$package" --target StubTransport
bin=$("$swift" build --package-path "$package" --show-bin-path)
triple=$("$swift" -print-target-info | jq -r .target.triple)
module=(-I "$bin/Modules")
# The C modules of ours, built or of the system, and those of dependencies, whose own headers bring their map.
for map in "$bin"/*.build/module.modulemap "$package"/Sources/*/module.modulemap \
    "$package"/.build/checkouts/*/Sources/*/include/module.modulemap; do
    [ ! -e "$map" ] || module+=(-Xcc "-fmodule-map-file=$map")
done

"$swift" symbolgraph-extract -module-name Transfer -target "$triple" "${module[@]}" -output-dir "$out/symbols" \
    -minimum-access-level public -skip-synthesized-members \
    -experimental-allowed-reexported-modules=HTTPCaching,HTTPMessages
Tests/Documentation/check.sh "$out/symbols" "$catalog"

Tests/Documentation/examples.sh "$catalog" "$out/examples"
compile() { "${SWIFTC:-swiftc}" -typecheck -swift-version 6 -warnings-as-errors -target "$triple" "${module[@]}" "$@"; }
compile "$out/examples/articles.swift"
for step in "$catalog"/Resources/*.swift; do compile -parse-as-library "$step"; done

docc convert "$catalog" --additional-symbol-graph-dir "$out/symbols" --fallback-display-name Transfer \
    --fallback-bundle-identifier org.dld.Transfer --warnings-as-errors --output-path "$out/Transfer.doccarchive"
echo "$out/Transfer.doccarchive"
