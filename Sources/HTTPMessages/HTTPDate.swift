/// HTTP dates such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7).
package enum HTTPDate {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    private typealias Word = Slice<UnsafeBufferPointer<UInt8>>

    /// The years of dates. Earlier ones precede the Gregorian calendar.
    private static let years: ClosedRange<Int64> = 1583...9999

    /// Parses an HTTP date.
    ///
    /// - Returns: Seconds since 1970, negative before; `nil` if the text is in none of the accepted formats. These are
    ///   the preferred format, the obsolete formats `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`, and
    ///   deviations that servers send: a single-digit day, an additional space, a year of two or of four digits in both
    ///   formats with a comma, another zone (`UTC`, `+0000`, `-0500`), and a zone before or after the year of the last
    ///   format.
    package static func parse(_ text: String) -> Int64? {
        // Every response has one or two dates, so they are parsed in place, without a copy.
        var text = text
        return text.withUTF8(parse)
    }

    private static func parse(_ bytes: UnsafeBufferPointer<UInt8>) -> Int64? {
        let words = Words(of: bytes[...], separatedBy: UInt8(ascii: " "))
        switch words.count {
        case 6 where words[0].last == UInt8(ascii: ","):
            return seconds(year(words[3]), words[2], words[1], words[4], offset(words[5]))
        case 4 where words[0].last == UInt8(ascii: ","):
            let date = Words(of: words[1], separatedBy: UInt8(ascii: "-"))
            guard date.count == 3 else { return nil }
            return seconds(year(date[2]), date[1], date[0], words[2], offset(words[3]))
        case 5: return seconds(number(words[4], in: years), words[1], words[2], words[3], 0)
        case 6:
            let isZoneLast = words[4].count == 4 && (0x30...0x39).contains(words[4].first ?? 0)
            let (year, zone) = isZoneLast ? (words[4], words[5]) : (words[5], words[4])
            return seconds(number(year, in: years), words[1], words[2], words[3], offset(zone))
        default: return nil
        }
    }

    /// Parses a year of four or of two digits.
    private static func year(_ word: Word) -> Int64? {
        // RFC 9110 moves a two-digit year to the past if it is more than 50 years ahead. With this rule no year exceeds
        // 2069.
        guard word.count == 2 else { return word.count == 4 ? number(word, in: years) : nil }
        return number(word, in: 0...99).map { $0 + ($0 < 70 ? 2000 : 1900) }
    }

    /// Parses a zone: the names of UTC, or an offset such as `+0100` (RFC 5322, section 3.3).
    ///
    /// - Returns: Seconds ahead of UTC.
    private static func offset(_ zone: Word) -> Int64? {
        if zone.elementsEqual("GMT".utf8) || zone.elementsEqual("UTC".utf8) || zone.elementsEqual("UT".utf8)
            || zone.elementsEqual("Z".utf8)
        {
            return 0
        }
        let isBehind = zone.first == UInt8(ascii: "-")
        let digits = zone.dropFirst()
        guard zone.count == 5, isBehind || zone.first == UInt8(ascii: "+"),
            let hours = number(digits.prefix(2), in: 0...23), let minutes = number(digits.suffix(2), in: 0...59)
        else { return nil }
        return (isBehind ? -1 : 1) * (hours * 3600 + minutes * 60)
    }

    /// The words of a date, stored inline without a heap allocation.
    private struct Words {
        private var words: InlineArray<6, Word>
        /// The number of words; one more than the capacity if there are too many.
        private(set) var count = 0

        init(of text: Word, separatedBy separator: UInt8) {
            words = InlineArray(repeating: text)
            var rest = text
            while let start = rest.firstIndex(where: { $0 != separator }) {
                let end = rest[start...].firstIndex(of: separator) ?? rest.endIndex
                if count < words.count { words[count] = rest[start..<end] }
                count += 1
                rest = rest[end...]
                if count > words.count { return }
            }
        }

        subscript(index: Int) -> Word { words[index] }
    }

    private static func seconds(
        _ year: Int64?, _ month: Word, _ day: Word, _ time: Word, _ offset: Int64?
    ) -> Int64? {
        guard let year, let offset,
            let month = months.firstIndex(where: { month.elementsEqual($0.utf8) }).map({ Int64($0 + 1) })
        else { return nil }
        let first = daysSince1970(year: year, month: month, day: 1)
        let next = month < 12 ? daysSince1970(year: year, month: month + 1, day: 1) : first + 31
        let clock = Words(of: time, separatedBy: UInt8(ascii: ":"))
        guard let day = number(day, in: 1...(next - first)), clock.count == 3, let hour = number(clock[0], in: 0...23),
            let minute = number(clock[1], in: 0...59), let second = number(clock[2], in: 0...60)
        else { return nil }
        return (first + day - 1) * 86_400 + hour * 3600 + minute * 60 + second - offset
    }

    private static func number(_ digits: Word, in range: ClosedRange<Int64>) -> Int64? {
        guard digits.count <= 18, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        let value = digits.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
        return range.contains(value) ? value : nil
    }

    /// Returns the days since 1970 in the proleptic Gregorian calendar. Years begin in March, so that a leap day is the
    /// last day of its year.
    private static func daysSince1970(year: Int64, month: Int64, day: Int64) -> Int64 {
        let marchYear = month <= 2 ? year - 1 : year
        let monthFromMarch = (month + 9) % 12
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + day - 1
        let leapDays = marchYear / 4 - marchYear / 100 + marchYear / 400
        // There are 719,468 days between 1 March of the year 0 and 1 January 1970.
        return marchYear * 365 + leapDays + dayOfYear - 719_468
    }
}
