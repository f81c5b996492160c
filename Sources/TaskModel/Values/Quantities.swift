/// A parser and formatter for sizes in bytes: `500K`, `2M`, `1.5G`. Units are powers of 1024.
public enum ByteSize {
    /// Parses a size.
    ///
    /// - Returns: bytes, or `nil` where the text is not a size or is larger than `Int64` can hold.
    public static func parse(_ text: String) -> Int64? {
        let units: [UInt8: Int] = [
            UInt8(ascii: "K"): 10, UInt8(ascii: "M"): 20, UInt8(ascii: "G"): 30, UInt8(ascii: "T"): 40,
        ]
        var digits = Array(text.utf8)
        var shift = 0
        if let last = digits.last, let unit = units[last & 0xDF] {
            shift = unit
            digits.removeLast()
        }
        guard let value = decimal(digits) else { return nil }
        let bytes = value * Double(Int64(1) << shift)
        return bytes < 9.2e18 ? Int64(bytes) : nil
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

/// A parser for durations: `100ms`, `2s`, `10m`, `6h`, `7d`.
public enum TimeSpan {
    /// Parses a duration.
    ///
    /// - Returns: milliseconds, or `nil` where the text is not a duration.
    public static func parse(_ text: String) -> Milliseconds? {
        let units: [(suffix: String, milliseconds: Double)] = [
            ("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
        ]
        for unit in units where text.hasSuffix(unit.suffix) {
            guard let value = decimal(Array(text.utf8.dropLast(unit.suffix.utf8.count))) else { continue }
            let span = value * unit.milliseconds
            return span < 1e15 ? Milliseconds(span) : nil
        }
        return nil
    }
}

/// Parses decimal digits with at most one decimal point between them. Rejects signs, exponents and infinity.
private func decimal(_ digits: [UInt8]) -> Double? {
    guard !digits.isEmpty, digits.count <= 20 else { return nil }
    var points = 0
    for digit in digits {
        if digit == UInt8(ascii: ".") {
            points += 1
        } else if !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) {
            return nil
        }
    }
    guard points <= 1, digits.first != UInt8(ascii: "."), digits.last != UInt8(ascii: ".") else { return nil }
    return Double(String(decoding: digits, as: UTF8.self))
}
