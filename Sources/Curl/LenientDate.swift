import CCurl

/// Dates in all formats in which servers write them.
package enum LenientDate {
    /// Returns the seconds since 1970 of a date as libcurl parses it; `nil` if it is no date.
    package static func seconds(_ text: String) -> Int64? {
        let seconds = curl_getdate(text, nil)
        return seconds == -1 ? nil : Int64(seconds)
    }
}
