import CCurl

/// Where libcurl says in words what goes wrong with a handle (`CURLOPT_ERRORBUFFER`).
final class ErrorText {
    private let words = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    init() { words.pointee = 0 }

    deinit { words.deallocate() }

    /// What was said last; `nil` where nothing was.
    var text: String? { words.pointee == 0 ? nil : String(cString: words) }

    func clear() { words.pointee = 0 }

    /// From here on libcurl writes here; to be detached before this goes away.
    func attach(to easy: borrowing EasyHandle) throws(CurlError) {
        try CurlError.check(ccurl_set_pointer(easy.raw, CURLOPT_ERRORBUFFER, words))
    }

    func detach(from easy: borrowing EasyHandle) {
        // Without a pointer nothing can be refused: libcurl takes the option as it is.
        _ = ccurl_set_pointer(easy.raw, CURLOPT_ERRORBUFFER, nil)
    }
}
