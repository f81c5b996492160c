/// Dates of HTTP, `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7).
enum HTTPDate {
    private static let months: StaticString = "JanFebMarAprMayJunJulAugSepOctNovDec"
    /// What stands where in the 29 bytes: digits are 0, letters of any kind a.
    private static let form: StaticString = "aaa, 00 aaa 0000 00:00:00 GMT"

    /// - Returns: seconds since 1970, `nil` for anything but the preferred form and what comes close to it: a single
    ///   digit, a space too many.
    static func parse(_ text: String) -> Int64? {
        // Every answer brings one or two: read where they lie.
        var bytes = text
        return bytes.withUTF8(parse) ?? words(text)
    }

    private static func parse(_ bytes: UnsafeBufferPointer<UInt8>) -> Int64? {
        let hasForm = form.withUTF8Buffer { form in
            bytes.count == form.count
                && zip(bytes, form).allSatisfy { byte, expected in
                    switch expected {
                    case UInt8(ascii: "0"): (0x30...0x39).contains(byte)
                    case UInt8(ascii: "a"): (0x41...0x5A).contains(byte & 0xDF)
                    default: byte == expected
                    }
                }
        }
        guard hasForm else { return nil }
        func number(_ range: Range<Int>) -> Int64 { bytes[range].reduce(0) { $0 * 10 + Int64($1 - 0x30) } }
        let month = months.withUTF8Buffer { months in
            (0..<12).first { bytes[8..<11].elementsEqual(months[($0 * 3)..<($0 * 3 + 3)]) }
        }
        let (day, year) = (number(5..<7), number(12..<16))
        let (hour, minute, second) = (number(17..<19), number(20..<22), number(23..<25))
        return seconds(year, month, day, (hour, minute, second))
    }

    private static func words(_ text: String) -> Int64? {
        let words = text.split(separator: " ")
        guard words.count == 6, words[0].hasSuffix(","), words[5] == "GMT", let day = Int64(words[1]),
            let year = Int64(words[3])
        else { return nil }
        let month = months.withUTF8Buffer { months in
            (0..<12).first { words[2].utf8.elementsEqual(months[($0 * 3)..<($0 * 3 + 3)]) }
        }
        let clock = words[4].split(separator: ":").compactMap { Int64($0) }
        return clock.count == 3 ? seconds(year, month, day, (clock[0], clock[1], clock[2])) : nil
    }

    /// - Parameter month: from 0.
    private static func seconds(
        _ year: Int64, _ month: Int?, _ day: Int64, _ clock: (hour: Int64, minute: Int64, second: Int64)
    ) -> Int64? {
        guard let month, (1...31).contains(day), (1970...9999).contains(year), (0..<24).contains(clock.hour),
            (0..<60).contains(clock.minute), (0...60).contains(clock.second)
        else { return nil }
        return daysSince1970(year: year, month: Int64(month + 1), day: day) * 86_400
            + clock.hour * 3600 + clock.minute * 60 + clock.second
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
