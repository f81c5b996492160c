import TaskModel

/// A URL with sets and ranges in the syntax of curl: `{iso,sig}`, `[1-9]`, `[001-100:2]`, `[a-z]`. A backslash takes the
/// meaning of the next character away.
struct URLGlob {
    /// The maximum number of URLs of one command.
    static let limit = 10_000

    private enum Part {
        case text(String)
        case values([String])
    }

    private var parts: [Part] = []

    /// Parses a URL.
    init(parsing url: String) throws(Failure) {
        func refuse(_ message: String) -> Failure { .usage("\(url): --glob: \(message)", field: "url") }
        var (text, rest) = ("", Substring(url))
        while let character = rest.popFirst() {
            switch character {
            case "\\":
                guard let next = rest.popFirst() else { throw refuse("a backslash at the end has no meaning") }
                text.append(next)
            case "{", "[":
                let closing: Character = character == "{" ? "}" : "]"
                guard let end = rest.firstIndex(of: closing) else { throw refuse("\(character) has no \(closing)") }
                let inner = rest[..<end]
                rest = rest[rest.index(after: end)...]
                if character == "[", Self.isAddress(inner) {
                    text += "[\(inner)]"
                    continue
                }
                let values = character == "{" ? Self.set(inner) : Self.range(inner)
                guard let values else {
                    throw refuse(
                        character == "{"
                            ? "{\(inner)} is not a set such as {iso,sig}; sets cannot be nested"
                            : "[\(inner)] is not a range such as [1-9], [001-100:2] or [a-z]")
                }
                guard values.count <= Self.limit else { throw refuse(Self.tooMany) }
                parts += [.text(text), .values(values)]
                text = ""
            case "}", "]": throw refuse("\(character) has no beginning")
            default: text.append(character)
            }
        }
        parts.append(.text(text))
        var count = 1
        for case .values(let values) in parts {
            count *= values.count
            guard count <= Self.limit else { throw refuse(Self.tooMany) }
        }
    }

    private static let tooMany = "stands for more than \(limit) URLs; split it"

    /// Whether the text between brackets is an IPv6 address.
    private static func isAddress(_ text: Substring) -> Bool {
        text.contains(":") && text.allSatisfy { $0.isHexDigit || $0 == ":" || $0 == "." }
    }

    private static func set(_ text: Substring) -> [String]? {
        if text.isEmpty || text.contains("{") { return nil }
        return text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }

    private static func range(_ text: Substring) -> [String]? {
        let halves = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false)
        let step = halves.count == 1 ? 1 : number(halves[1])
        guard ends.count == 2, let step, step > 0 else { return nil }
        if let first = letter(ends[0]), let last = letter(ends[1]), first <= last {
            return stride(from: Int(first), through: Int(last), by: step).map {
                String(UnicodeScalar(UInt8(truncatingIfNeeded: $0)))
            }
        }
        guard let first = number(ends[0]), let last = number(ends[1]), first <= last else { return nil }
        // Leading zeros give the width of all numbers.
        let width = ends[0].hasPrefix("0") ? ends[0].count : 0
        // One value more than allowed shows that there are too many.
        return stride(from: first, through: last, by: step).prefix(limit + 1).map {
            let digits = String($0)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
    }

    /// Returns a number of at most 15 digits, which leaves room for a step.
    private static func number(_ text: Substring) -> Int? {
        text.utf8.count <= 15 && !text.isEmpty && text.utf8.allSatisfy(\.isDigit) ? Int(text) : nil
    }

    private static func letter(_ text: Substring) -> UInt8? {
        guard text.utf8.count == 1, let byte = text.utf8.first, text.allSatisfy({ $0.isLetter && $0.isASCII }) else {
            return nil
        }
        return byte
    }

    /// The URLs with the values of their sets and ranges, the last of which changes fastest.
    var expanded: [(url: String, values: [String])] {
        var all: [(url: String, values: [String])] = [("", [])]
        for part in parts {
            switch part {
            case .text(let text): for index in all.indices { all[index].url += text }
            case .values(let values):
                all = all.flatMap { one in values.map { (one.url + $0, one.values + [$0]) } }
            }
        }
        return all
    }

    /// Returns a name with `#1` replaced by the first value, and so on.
    static func name(_ template: String, _ values: [String]) throws(Failure) -> String {
        var (name, rest) = ("", Substring(template))
        while let character = rest.popFirst() {
            let digits = rest.prefix { $0.isASCII && $0.isNumber }
            if character == "#", let number = Int(digits), number > 0 {
                guard number <= values.count else {
                    throw .usage(
                        "--output: #\(number) has no value; the URL has "
                            + (values.isEmpty ? "no set or range" : "sets and ranges up to #\(values.count)"),
                        field: "--output")
                }
                name += values[number - 1]
                rest = rest.dropFirst(digits.count)
            } else {
                name.append(character)
            }
        }
        return name
    }
}
