import Glibc

// A comparison of automatic connections over simulated lines with the best fixed number of connections: first over the
// named lines, then over random ones. `growth.sh` compiles this file with the decision code and the simulation only.

/// Formats a number rounded to `digits` decimal places.
func text(_ value: Double, _ digits: Int = 2) -> String {
    guard value.isFinite, abs(value) < 1e12 else { return "–" }
    let scale = pow(10, Double(digits))
    return "\((value * scale).rounded() / scale)"
}

func share(_ part: Int, of whole: Int) -> String { text(Double(part) / Double(max(1, whole)) * 100, 1) + " %" }

let arguments = CommandLine.arguments
let count = arguments.count > 1 ? max(1, Int(arguments[1]) ?? 1_000) : 1_000
let seed = arguments.count > 2 ? UInt64(arguments[2]) ?? 1 : 1

print("**Automatic connections over simulated lines**\n")
print("| line | 1 | 2 | 4 | 8 | 16 | automatic | of the best | settled at | needed |")
print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
for line in GrowthLines.named {
    let judgement = GrowthJudgement(line)
    let fixed = judgement.seconds.map { text($0, 1) }.joined(separator: " | ")
    let automatic = judgement.automatic
    print(
        "| \(line.name) | \(fixed) | \(text(automatic.seconds, 1)) | \(text(judgement.ratio)) | \(automatic.settled)"
            + " | \(judgement.need) |")
}

var generator = SeededGenerator(seed: seed)
let judgements = (0..<count).map { _ in GrowthJudgement(GrowthLines.random(using: &generator)) }
let ratios = judgements.map(\.ratio).sorted()
print("\n**\(count) random lines** (seed \(seed))\n")
print("| lines | how many | within 1.1 of the best | of those above 6 s, more than twice the connections needed |")
print("|---|---:|---:|---:|")
for name in [""] + Set(judgements.map(\.line.name)).sorted() {
    let some = judgements.filter { name.isEmpty || $0.line.name == name }
    let long = some.filter(\.isLong)
    print(
        "| \(name.isEmpty ? "all" : name) | \(some.count) | \(share(some.count { $0.ratio <= 1.1 }, of: some.count))"
            + " | \(share(long.count(where: \.hasTooMany), of: long.count)) |")
}
let percentiles = [50, 90, 95, 97, 99].map { "\($0) %: \(text(ratios[ratios.count * $0 / 100], 3))" }
print("\nTime as a share of the best: \(percentiles.joined(separator: ", ")), at most \(text(ratios.last ?? 1)).\n")
print("```")
for step in 0..<12 {
    let low = step == 0 ? 0 : 0.98 + 0.02 * Double(step)
    let high = step == 11 ? Double.infinity : 1 + 0.02 * Double(step)
    let number = ratios.count { $0 > low && $0 <= high }
    let label = step == 11 ? "above \(text(low))" : "up to \(text(high))"
    let bar = String(repeating: "#", count: (number * 60 + count - 1) / count)
    print(label + String(repeating: " ", count: max(1, 12 - label.count)) + bar + " \(number)")
}
print("```")
if arguments.count > 3, let file = fopen(arguments[3], "w") {
    fputs("line,ratio,best,need,settled,noise,latency\n", file)
    for judgement in judgements {
        let line = judgement.line
        fputs(
            "\(line.name),\(judgement.ratio),\(judgement.best),\(judgement.need),\(judgement.automatic.settled),"
                + "\(max(line.noise, line.sharedNoise)),\(line.latency)\n", file)
    }
    fclose(file)
}
