/// A parser and formatter for sizes in bytes: `500K`, `2M`, `1.5GiB` in powers of 1024, `2MB` in powers of 1000.
public enum ByteSize {
    /// Parses a size.
    ///
    /// - Returns: bytes, or `nil` where the text is not a size or is larger than `Int64` can hold.
    public static func parse(_ text: String) -> Int64? {
        let number = text.utf8.prefix { isNumeral($0) }
        guard let factor = factor(of: text.dropFirst(number.count)), let value = decimal(Array(number)) else {
            return nil
        }
        let bytes = value * factor
        return bytes < 9.2e18 ? Int64(bytes) : nil
    }

    private static func factor(of unit: Substring) -> Double? {
        let prefixes: [Character: Int] = ["k": 1, "m": 2, "g": 3, "t": 4]
        guard let first = unit.first else { return 1 }
        if unit == "B" { return 1 }
        guard let power = prefixes[Character(first.lowercased())] else { return nil }
        let step: Double
        switch unit.dropFirst() {
        case "", "iB": step = 1024
        case "B": step = 1000
        default: return nil
        }
        return (0..<power).reduce(1) { factor, _ in factor * step }
    }

    /// Formats a size for display, such as `1.4 GiB`. Rounded, so not meant for scripts.
    public static func describe(_ bytes: Int64) -> String {
        guard bytes >= 1024 else { return "\(bytes) B" }
        var value = Double(bytes)
        var unit = -1
        let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
        while value >= 1024, unit < units.count - 1 {
            value /= 1024
            unit += 1
        }
        let text: String
        if value >= 100 {
            text = String(Int(value.rounded()))
        } else {
            let tenths = Int((value * 10).rounded())
            text = "\(tenths / 10).\(tenths % 10)"
        }
        return "\(text) \(units[unit])"
    }
}

/// A parser for durations: `100ms`, `2s`, `10m`, `6h`, `7d`, and several units together, the largest first: `1h30m`.
public enum TimeSpan {
    /// Parses a duration.
    ///
    /// - Returns: milliseconds, or `nil` where the text is not a duration.
    public static func parse(_ text: String) -> Milliseconds? {
        let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)]
        var (rest, allowed) = (Substring(text).utf8, units[...])
        var span = 0.0
        repeat {
            let number = rest.prefix { isNumeral($0) }
            rest = rest[number.endIndex...]
            let word = rest.prefix { !isNumeral($0) }
            rest = rest[word.endIndex...]
            guard let index = allowed.firstIndex(where: { word.elementsEqual($0.0.utf8) }),
                let value = decimal(Array(number))
            else { return nil }
            span += value * Double(allowed[index].1)
            allowed = allowed[(index + 1)...]
        } while !rest.isEmpty
        return span < 1e15 ? Milliseconds(span) : nil
    }
}

private func isNumeral(_ byte: UInt8) -> Bool { byte == UInt8(ascii: ".") || byte.isDigit }

/// Parses decimal digits with at most one decimal point between them. Rejects signs, exponents and infinity.
private func decimal(_ digits: [UInt8]) -> Double? {
    guard !digits.isEmpty, digits.count <= 20 else { return nil }
    var points = 0
    for digit in digits {
        if digit == UInt8(ascii: ".") {
            points += 1
        } else if !digit.isDigit {
            return nil
        }
    }
    guard points <= 1, digits.first != UInt8(ascii: "."), digits.last != UInt8(ascii: ".") else { return nil }
    return Double(String(decoding: digits, as: UTF8.self))
}
