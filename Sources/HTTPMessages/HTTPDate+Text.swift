extension HTTPDate {
    private static let weekdays = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let monthNames = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Returns the preferred HTTP date format (RFC 9110, section 5.6.7) of a time.
    ///
    /// - Parameter seconds: The time in seconds since 1970. It is clamped to the years 1583 to 9999.
    package static func text(_ seconds: Int64) -> String {
        let seconds = min(max(-12_212_553_600, seconds), 253_402_300_799)
        let time = (seconds % 86_400 + 86_400) % 86_400
        let days = (seconds - time) / 86_400
        let (year, month, day) = civil(days)
        func two(_ number: Int64) -> String { (number < 10 ? "0" : "") + String(number) }
        return "\(weekdays[Int((days % 7 + 7) % 7)]), \(two(day)) \(monthNames[Int(month - 1)]) \(year) "
            + "\(two(time / 3600)):\(two(time / 60 % 60)):\(two(time % 60)) GMT"
    }

    /// Converts days since 1970 to a calendar date; the inverse of the day count in ``parse(_:)``. Years begin in
    /// March, so that a leap day is the last day of its year.
    private static func civil(_ daysSince1970: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let days = daysSince1970 + 719_468
        let (era, dayOfEra) = (days / 146_097, days % 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        return (era * 400 + yearOfEra + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
    }
}
