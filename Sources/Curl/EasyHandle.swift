import CCurl

/// Owns a `CURL *` and whatever must live as long as it.
package struct EasyHandle: ~Copyable {
    let raw: UnsafeMutableRawPointer
    /// libcurl keeps no copies of these lists.
    private var headers = HeaderList()
    private var addresses = HeaderList()
    private var connectTo = HeaderList()
    private var commandsBefore = HeaderList()
    private var commandsBetween = HeaderList()
    private var commandsAfter = HeaderList()

    package init() throws(CurlError) {
        try CurlLibrary.initialise()
        guard let raw = curl_easy_init() else { throw CurlError(CURLE_OUT_OF_MEMORY) }
        self.raw = raw
    }

    deinit { curl_easy_cleanup(raw) }

    package borrowing func set(_ option: EasyOption.Text, to value: String) throws(CurlError) {
        // A NUL would end the value for libcurl where it goes on for us.
        guard !value.utf8.contains(0) else { throw CurlError(CURLE_BAD_FUNCTION_ARGUMENT) }
        try CurlError.check(ccurl_set_string(raw, option.option, value))
    }

    /// Takes away what libcurl was built with.
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

    /// `+host:port:address,address`: see `CURLOPT_RESOLVE`; the plus lets the entry expire.
    package mutating func setAddresses(_ list: consuming HeaderList) throws(CurlError) {
        addresses = list
        try CurlError.check(ccurl_set_list(raw, CURLOPT_RESOLVE, addresses.head))
    }

    /// Has every look-up fail that ``setAddresses(_:)`` does not answer, those of addresses in URLs among them.
    package borrowing func refuseLookups() throws(CurlError) {
        try CurlError.check(ccurl_refuse_lookups(raw))
    }

    /// `host:port:address:port`, the first two empty for any: see `CURLOPT_CONNECT_TO`.
    package mutating func setConnectTo(_ list: consuming HeaderList) throws(CurlError) {
        connectTo = list
        try CurlError.check(ccurl_set_list(raw, CURLOPT_CONNECT_TO, connectTo.head))
    }

    /// Commands to a file server before and after the transfer, and between the making of FTP's data connection and the
    /// transfer; after it only where it succeeded. One that begins with an asterisk may fail: see `CURLOPT_QUOTE`,
    /// `CURLOPT_PREQUOTE` and `CURLOPT_POSTQUOTE`.
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
