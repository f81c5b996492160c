import TaskModel

/// An error of the argument parser, reworded to begin with the option or argument at fault.
struct UsageFault: Equatable {
    /// The error message, on one line.
    var message: String
    /// The option or argument at fault, as typed on the command line.
    var field: String?

    /// Parses the parser's message.
    ///
    /// - Parameters:
    ///   - message: the message of the parser.
    ///   - arguments: the command line, from which the argument after an option without a value is taken.
    init(_ message: String, arguments: [String] = []) {
        let line = message.split(separator: "\n").map { $0.drop { $0 == " " } }.joined(separator: " ")
        let quoted = Self.quoted(line)
        if line.hasPrefix("The value '"), line.firstRange(of: "' is invalid for '") != nil, quoted.count > 1 {
            self.init(value: quoted[0], of: quoted[1], choices: Array(quoted.dropFirst(2)), line)
        } else if line.hasPrefix("Missing value for '"), let label = quoted.first {
            self.init(missingValueOf: label, arguments)
        } else if line.hasPrefix("Unknown option '"), let option = quoted.first {
            self.init(unknownOption: option, nearest: quoted.dropFirst().first)
        } else if line.hasPrefix("Missing expected argument '"), let label = quoted.first {
            let name = Self.name(of: label)
            self.init(message: "give \("aeiou".contains(name.prefix(1)) ? "an" : "a") \(name)", field: name)
        } else {
            let isOfParser = line.lowercased().firstRange(of: "unexpected argument") != nil
            let text = Self.lowercased(line.hasSuffix(".") ? String(line.dropLast()) : line)
                .replacing("'", with: isOfParser ? "\"" : "'")
            let isOfLimit = isOfParser && ArgumentRuns.commandIndex(arguments).map { arguments[$0] } == "limit"
            let rate = quoted.last.flatMap { DaemonRateArgument(argument: $0) == nil ? nil : $0 } ?? "RATE"
            self.init(
                message: text + (isOfLimit ? "; write --download \(rate) or --upload \(rate)" : ""),
                field: Self.subject(of: text))
        }
    }

    private init(message: String, field: String?) {
        self.message = message
        self.field = field
    }

    init(unknownOption option: String, nearest: String?) {
        let suggestion = nearest.map { "; did you mean \($0)" } ?? ""
        self.init(message: "\(option): there is no such option\(suggestion)", field: option)
    }

    private init(value: String, of label: String, choices: [String], _ line: String) {
        let name = Self.name(of: label)
        let listed = choices.isEmpty ? Self.listed(line) : choices
        let right = listed.isEmpty ? Self.expectation(label) : "one of \(listed.joined(separator: ", "))"
        self.init(message: "\(name): \"\(value)\" is not \(right ?? "a valid value")", field: name)
    }

    private init(missingValueOf label: String, _ arguments: [String]) {
        let name = Self.name(of: label)
        let next = arguments.firstIndex(of: name).map { arguments[($0 + 1)...].first } ?? nil
        guard let next, next.hasPrefix("-"), next.utf8.count > 1 else {
            let right = Self.expectation(label).map { "; give \($0)" } ?? ""
            self.init(message: "\(name): needs a value\(right)", field: name)
            return
        }
        if let right = Self.expectation(label), next.utf8.dropFirst().first?.isDigit == true {
            self.init(message: "\(name): \"\(next)\" is not \(right)", field: name)
        } else {
            self.init(
                message: "\(name): needs a value; write one that begins with - as \(name)=\(next)", field: name)
        }
    }

    /// Returns a sentence of the parser as part of a message: with a lower-case letter, unless its first word is a name in
    /// capitals.
    private static func lowercased(_ line: String) -> String {
        guard let first = line.first, line.dropFirst().first?.isLowercase == true else { return line }
        return first.lowercased() + line.dropFirst()
    }

    // MARK: Expected values and names

    /// The values that options expect, where the parser's message does not state them. The first label that is a prefix
    /// applies.
    private static let expectations = [
        ("--connections", ConnectionCount.expectation),
        ("--limit <rate>", "a rate in bytes per second such as 500K or 2M, or none"),
        ("--limit <n>", "a positive whole number"),
        ("--download", "a rate in bytes per second such as 500K or 2M, none or config"),
        ("--upload", "a rate in bytes per second such as 500K or 2M, none or config"),
        ("--max-attempts", "a whole number from 1 to \(TaskSpecification.Limit.attempts.upperBound)"),
        ("--max-size", "a size such as 500K, 2MB or 1.5GiB"),
        ("--connect-timeout", "a time above 0 and up to 7d, such as 500ms, 30s or 10m"),
        ("--stall-timeout", "a time above 0 and up to 7d, such as 500ms, 30s or 10m"),
        ("--exec-timeout", "a time above 0 and up to 7d, such as 30s or 10m"),
        ("--timeout", "a number of seconds such as 30 or 0.5, or a time such as 5m"),
        ("--state", oneOf(TaskState.self)), ("--priority", oneOf(TaskPriority.self)),
        ("--on-conflict", oneOf(ConflictPolicy.self)), ("--name-from", oneOf(NameSource.self)),
        ("--method", "one of PUT, POST"),
        ("--start-at", "a time such as 2030-01-31T22:00, 22:00 or +1h30m"),
        ("--since", "a time such as 2026-01-31, 22:00 or 2h"), ("--until", "a time such as 2026-01-31, 22:00 or 2h"),
        ("--after <n>", "a sequence number (a whole number)"), ("--after ", "a task id (a whole number)"),
        ("--before", "a task id (a whole number)"),
        ("--after-task", "a task id (a whole number)"), ("<id>", "a task id (a whole number)"),
    ]

    private static func oneOf<Word: CaseIterable & RawRepresentable<String>>(_ type: Word.Type) -> String {
        "one of \(type.allCases.map(\.rawValue).joined(separator: ", "))"
    }

    private static func expectation(_ label: String) -> String? {
        expectations.first { label.hasPrefix($0.0) }?.1
    }

    /// Returns the name in a label: `--limit <n>` → `--limit`; `<id> ...` → `id`.
    private static func name(of label: String) -> String {
        if label.hasPrefix("<") { return String(label.dropFirst().prefix { $0 != ">" }) }
        return String(label.prefix { $0 != " " && $0 != ":" })
    }

    /// Returns the option or argument with which one of dlctl's own messages begins, such as `--batch` of `--batch: is
    /// empty`.
    private static func subject(of text: String) -> String? {
        let first = text.prefix { $0 != " " }
        return first.hasSuffix(":") ? String(first.dropLast()) : nil
    }

    /// Returns the texts between single quotation marks.
    private static func quoted(_ line: String) -> [String] {
        let parts = line.split(separator: "'", omittingEmptySubsequences: false)
        return parts.indices.filter { $0 % 2 == 1 }.map { String(parts[$0]) }
    }

    /// Returns the choices of a list with a dash before each.
    private static func listed(_ line: String) -> [String] {
        guard let start = line.firstRange(of: "one of the following: - ")?.upperBound else { return [] }
        return line[start...].split(separator: " - ").map { $0.last == "." ? String($0.dropLast()) : String($0) }
    }
}

extension UsageFault {
    /// Creates the fault for the first option that the command does not know. The parser reports missing values first.
    ///
    /// - Parameters:
    ///   - arguments: the arguments of the command line.
    ///   - help: the help of the command, which lists its options.
    /// - Returns: `nil` if the command knows all options.
    init?(unknownOptionIn arguments: [String], help: String) {
        let known = Self.options(in: help)
        let given = arguments.prefix { $0 != "--" }.filter { $0.hasPrefix("-") && $0 != "-" }
        let names = given.map { String($0.prefix { $0 != "=" }) }
        guard let unknown = names.first(where: { !known.contains($0) }) else { return nil }
        // The parser also takes a negative number for an option.
        if unknown.utf8.dropFirst().first?.isDigit == true, help.contains("\n  <id"),
            let right = Self.expectation("<id>")
        {
            self.init(message: "id: \"\(unknown)\" is not \(right)", field: "id")
            return
        }
        let long = known.filter { $0.hasPrefix("--") }
        let other = Self.otherOptions[unknown].flatMap { known.contains($0) ? $0 : nil }
        self.init(
            unknownOption: unknown, nearest: other ?? (unknown.hasPrefix("--") ? Self.nearest(unknown, long) : nil))
    }

    /// The options that other programs call by these names.
    private static let otherOptions = [
        "--dir": "--directory", "-P": "--directory", "-O": "--output", "--out": "--output",
        "--password": "--password-file", "--limit-rate": "--limit", "-H": "--header", "--sha256": "--checksum",
        "--folder": "--directory", "--name": "--output", "--at": "--start-at", "--overwrite": "--on-conflict",
        "-i": "--input", "-x": "--connections", "--rate": "--limit",
    ]

    /// Compares options without their dashes, which would make all options look similar.
    private static func nearest(_ option: String, _ known: Set<String>) -> String? {
        NearestWord.to(String(option.dropFirst(2)), among: known.map { String($0.dropFirst(2)) }).flatMap { found in
            let shorter = min(found.utf8.count, option.utf8.count - 2)
            return shorter > 3 || option.dropFirst(2).first == found.first ? "--" + found : nil
        }
    }

    /// Returns the options in the help: `-o, --output <name>` → `-o`, `--output`.
    private static func options(in help: String) -> Set<String> {
        var names: Set<String> = []
        for line in help.split(separator: "\n") where line.hasPrefix("  -") {
            for word in line.split(whereSeparator: { $0 == " " || $0 == "," || $0 == "/" }) {
                guard word.hasPrefix("-") else { break }
                names.insert(String(word))
            }
        }
        return names
    }
}
