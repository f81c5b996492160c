/// Dates of HTTP, `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7).
enum HTTPDate {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// - Returns: seconds since 1970, `nil` for anything but the preferred form and what comes close to it: a single
    ///   digit, a space too many.
    static func parse(_ text: String) -> Int64? {
        // Every answer brings one or two: read where they lie.
        var text = text
        return text.withUTF8(parse)
    }

    private static func parse(_ bytes: UnsafeBufferPointer<UInt8>) -> Int64? {
        let words = bytes.split(separator: UInt8(ascii: " "))
        guard words.count == 6, words[0].last == UInt8(ascii: ","), words[5].elementsEqual("GMT".utf8),
            let day = number(words[1], in: 1...31),
            let month = months.firstIndex(where: { words[2].elementsEqual($0.utf8) }),
            let year = number(words[3], in: 1970...9999)
        else { return nil }
        let clock = words[4].split(separator: UInt8(ascii: ":"))
        guard clock.count == 3, let hour = number(clock[0], in: 0...23), let minute = number(clock[1], in: 0...59),
            let second = number(clock[2], in: 0...60)
        else { return nil }
        return daysSince1970(year: year, month: Int64(month + 1), day: day) * 86_400
            + hour * 3600 + minute * 60 + second
    }

    private static func number(_ digits: Slice<UnsafeBufferPointer<UInt8>>, in range: ClosedRange<Int64>) -> Int64? {
        guard digits.count <= 18, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        let value = digits.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
        return range.contains(value) ? value : nil
    }

    /// Days of the proleptic Gregorian calendar, counted in years that begin in March, so that leap days come last.
    private static func daysSince1970(year: Int64, month: Int64, day: Int64) -> Int64 {
        let marchYear = month <= 2 ? year - 1 : year
        let monthFromMarch = (month + 9) % 12
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + day - 1
        let leapDays = marchYear / 4 - marchYear / 100 + marchYear / 400
        // 719,468 days lie between 1 March of the year 0 and 1 January 1970.
        return marchYear * 365 + leapDays + dayOfYear - 719_468
    }
}
