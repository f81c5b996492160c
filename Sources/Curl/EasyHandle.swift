import CCurl
import Glibc

/// An owner of a `CURL *` and of everything that must live as long.
package struct EasyHandle: ~Copyable {
    let raw: UnsafeMutableRawPointer
    /// The lists set on the handle, which libcurl does not copy.
    private var headers = HeaderList()
    private var addresses = HeaderList()
    private var connectTo = HeaderList()
    private var commandsBefore = HeaderList()
    private var commandsBetween = HeaderList()
    private var commandsAfter = HeaderList()

    /// The URL set on the handle, whose parsed form libcurl does not copy before it connects.
    private var url: CurlURL?

    /// Creates a handle.
    ///
    /// Handles are not reused: libcurl 7.88 keeps a pointer to the last header field of the transfer before, which it
    /// has freed, and appends to it if the next response begins with a continuation line.
    package init() throws(CurlError) {
        try CurlLibrary.initialise()
        guard let raw = curl_easy_init() else { throw CurlError(CURLE_OUT_OF_MEMORY) }
        self.raw = raw
    }

    deinit { curl_easy_cleanup(raw) }

    package borrowing func set(_ option: EasyOption.Text, to value: String) throws(CurlError) {
        // A pointer to the string's own storage: an implicit conversion would copy it. A NUL would end the value for
        // libcurl but not for Swift.
        let code = value.withCString { text in
            strlen(text) == value.utf8.count ? ccurl_set_string(raw, option.option, text) : CURLE_BAD_FUNCTION_ARGUMENT
        }
        try CurlError.check(code)
    }

    /// Sets the URL.
    package mutating func setURL(_ url: CurlURL) throws(CurlError) {
        try set(.url, to: url.text)
        self.url = url
        // With the text alone, libcurl would parse it and assemble it again.
        try CurlError.check(url.withParsed { ccurl_set_pointer(raw, CURLOPT_CURLU, $0.map { .init($0) }) })
    }

    /// Removes the default that libcurl was built with.
    package borrowing func clear(_ option: EasyOption.Text) throws(CurlError) {
        try CurlError.check(ccurl_set_string(raw, option.option, nil))
    }

    package borrowing func set(_ option: EasyOption.Number, to value: Int) throws(CurlError) {
        try CurlError.check(ccurl_set_long(raw, option.option, value))
    }

    package borrowing func set(_ option: EasyOption.Number, to value: Bool) throws(CurlError) {
        try CurlError.check(ccurl_set_long(raw, option.option, value ? 1 : 0))
    }

    package borrowing func set(_ option: EasyOption.Offset, to value: Int64) throws(CurlError) {
        try CurlError.check(ccurl_set_offset(raw, option.option, curl_off_t(value)))
    }

    package mutating func setHeaders(_ list: consuming HeaderList) throws(CurlError) {
        headers = list
        try CurlError.check(ccurl_set_list(raw, CURLOPT_HTTPHEADER, headers.head))
    }

    /// Sets entries of the form `+host:port:address,address`: see `CURLOPT_RESOLVE`. The plus lets the entry expire.
    package mutating func setAddresses(_ list: consuming HeaderList) throws(CurlError) {
        addresses = list
        try CurlError.check(ccurl_set_list(raw, CURLOPT_RESOLVE, addresses.head))
    }

    /// Makes every look-up fail that ``setAddresses(_:)`` does not cover, including those of addresses in URLs.
    package borrowing func refuseLookups() throws(CurlError) {
        try CurlError.check(ccurl_refuse_lookups(raw))
    }

    /// Sets entries of the form `host:port:address:port`; an empty host or port at the start matches any: see
    /// `CURLOPT_CONNECT_TO`.
    package mutating func setConnectTo(_ list: consuming HeaderList) throws(CurlError) {
        connectTo = list
        try CurlError.check(ccurl_set_list(raw, CURLOPT_CONNECT_TO, connectTo.head))
    }

    /// Sets the commands to a file server: before the transfer, between the opening of FTP's data connection and the
    /// transfer, and after the transfer if it succeeded. A command that begins with an asterisk may fail: see
    /// `CURLOPT_QUOTE`, `CURLOPT_PREQUOTE` and `CURLOPT_POSTQUOTE`.
    package mutating func setCommands(
        before: consuming HeaderList, between: consuming HeaderList, after: consuming HeaderList
    ) throws(CurlError) {
        commandsBefore = before
        commandsBetween = between
        commandsAfter = after
        try CurlError.check(ccurl_set_list(raw, CURLOPT_QUOTE, commandsBefore.head))
        try CurlError.check(ccurl_set_list(raw, CURLOPT_PREQUOTE, commandsBetween.head))
        try CurlError.check(ccurl_set_list(raw, CURLOPT_POSTQUOTE, commandsAfter.head))
    }

    package borrowing func set(_ option: EasyOption.Blob, to bytes: some Collection<UInt8>) throws(CurlError) {
        let bytes = ContiguousArray(bytes)
        let code = bytes.withUnsafeBytes { ccurl_set_blob(raw, option.option, $0.baseAddress, $0.count) }
        try CurlError.check(code)
    }
}
