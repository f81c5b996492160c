/// HTTP dates such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7).
package enum HTTPDate {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    private typealias Word = Slice<UnsafeBufferPointer<UInt8>>

    /// Parses an HTTP date.
    ///
    /// - Returns: Seconds since 1970; `nil` if the text is in none of the accepted formats. These are the preferred
    ///   format, the obsolete formats `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`, and slight
    ///   deviations such as a single-digit day or an additional space.
    package static func parse(_ text: String) -> Int64? {
        // Every response has one or two dates, so they are parsed in place, without a copy.
        var text = text
        return text.withUTF8(parse)
    }

    private static func parse(_ bytes: UnsafeBufferPointer<UInt8>) -> Int64? {
        let words = Words(of: bytes[...], separatedBy: UInt8(ascii: " "))
        switch words.count {
        case 6 where words[0].last == UInt8(ascii: ",") && words[5].elementsEqual("GMT".utf8):
            return seconds(number(words[3], in: 1970...9999), words[2], words[1], words[4])
        case 4 where words[0].last == UInt8(ascii: ",") && words[3].elementsEqual("GMT".utf8):
            let date = Words(of: words[1], separatedBy: UInt8(ascii: "-"))
            guard date.count == 3, date[2].count == 2, let year = number(date[2], in: 0...99) else { return nil }
            // RFC 9110 moves a two-digit year to the past if it is more than 50 years ahead. With this rule no year
            // exceeds 2069.
            return seconds(year + (year < 70 ? 2000 : 1900), date[1], date[0], words[2])
        case 5:
            return seconds(number(words[4], in: 1970...9999), words[1], words[2], words[3])
        default: return nil
        }
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

    private static func seconds(_ year: Int64?, _ month: Word, _ day: Word, _ time: Word) -> Int64? {
        guard let year, let month = months.firstIndex(where: { month.elementsEqual($0.utf8) }).map({ Int64($0 + 1) })
        else { return nil }
        let first = daysSince1970(year: year, month: month, day: 1)
        let next = month < 12 ? daysSince1970(year: year, month: month + 1, day: 1) : first + 31
        let clock = Words(of: time, separatedBy: UInt8(ascii: ":"))
        guard let day = number(day, in: 1...(next - first)), clock.count == 3, let hour = number(clock[0], in: 0...23),
            let minute = number(clock[1], in: 0...59), let second = number(clock[2], in: 0...60)
        else { return nil }
        return (first + day - 1) * 86_400 + hour * 3600 + minute * 60 + second
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
