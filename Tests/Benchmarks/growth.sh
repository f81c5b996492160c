#!/usr/bin/env bash
# What automatic connections take over simulated lines, on a virtual clock, beside the best fixed number: so that a
# change of the decision can be judged in seconds. Only the decision and the simulation are compiled.
#
# COUNT (1000), SEED (1), BENCH_REPORT (Markdown), BENCH_CSV (one row for each random line; none by default).
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C

report=${BENCH_REPORT:-.build/bench-growth.md}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir -p "$(dirname "$report")"

# One module: what is imported for the tests is beside it here.
for file in SimulatedLine GrowthSimulation GrowthLines GrowthJudgement; do
    sed '/^@testable import/d' "Tests/TransferTests/Segments/$file.swift" >"$place/$file.swift"
done
sed -n '/^private func mixed/,/^}/p; /^package struct SeededGenerator/,/^}/p' Tests/TestSupport/Resource.swift |
    sed 's/^package //; s/^    package /    /' >"$place/SeededGenerator.swift"
cp Tests/Benchmarks/growth.swift "$place/main.swift"
segments=Sources/Transfer/Segments
swiftc -O -o "$place/growth" "$place"/*.swift "$segments"/ConnectionScaler*.swift \
    Sources/Transfer/Messages/Segments.swift "$segments"/{PathObservation,ReceivedHistory,FirstConnection,PathCapacity}.swift
"$place/growth" "${COUNT:-1000}" "${SEED:-1}" ${BENCH_CSV:+"$BENCH_CSV"} | tee "$report"
