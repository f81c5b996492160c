import CCurl

/// The buffer for libcurl's error message on a handle (`CURLOPT_ERRORBUFFER`).
final class ErrorText {
    private let words = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    init() { words.pointee = 0 }

    deinit { words.deallocate() }

    /// The latest message; `nil` if there is none.
    var text: String? { words.pointee == 0 ? nil : String(cString: words) }

    func clear() { words.pointee = 0 }

    /// Makes libcurl write its messages to this buffer. Detach it before it is freed.
    func attach(to easy: borrowing EasyHandle) throws(CurlError) {
        try CurlError.check(ccurl_set_pointer(easy.raw, CURLOPT_ERRORBUFFER, words))
    }

    func detach(from easy: borrowing EasyHandle) {
        // Setting a null pointer cannot fail: libcurl accepts the option as it is.
        _ = ccurl_set_pointer(easy.raw, CURLOPT_ERRORBUFFER, nil)
    }
}
