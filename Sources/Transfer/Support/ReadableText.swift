/// Counts and times as text for people.
enum ReadableText {
    /// Returns a number with its noun, as in `1 byte` or `12 bytes`.
    static func count(_ number: Int64, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }

    static func bytes(_ number: some BinaryInteger) -> String { count(Int64(clamping: number), "byte") }

    /// Returns a part of a whole, as in `12 of 24 bytes`.
    ///
    /// - Parameter total: the whole; `nil` if it is unknown.
    static func bytes(_ number: Int64, of total: Int64?) -> String {
        total.map { "\(number) of \(bytes($0))" } ?? bytes(number)
    }

    /// Returns a time in milliseconds with one digit after the point, as in `12.5 ms`.
    static func time(microseconds: Int64) -> String {
        let tenths = microseconds.magnitude / 100
        return "\(microseconds < 0 ? "-" : "")\(tenths / 10).\(tenths % 10) ms"
    }

    /// Returns text with a space in place of each control character, so that it cannot forge a line or control a
    /// terminal.
    static func line(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isControl) else { return text }
        var line = ""
        for scalar in text.unicodeScalars { line.unicodeScalars.append(isControl(scalar) ? " " : scalar) }
        return line
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool { scalar.properties.generalCategory == .control }
}
