import CCurl

/// Keeps a handle that its user has given up.
final class HandleOwner {
    private let handle: EasyHandle

    init(_ handle: consuming EasyHandle) { self.handle = handle }
}

/// The loop's answer to calls that libcurl refuses.
extension LoopCore {
    /// Notes what a call for all transfers came to.
    ///
    /// After such a failure libcurl may wait for sockets that nobody watches, and for a deadline that nobody keeps: it
    /// does not say which transfers those are.
    func note(_ code: CURLMcode) {
        // CURLM_CALL_MULTI_PERFORM, below CURLM_OK, is no failure.
        if code.rawValue > CURLM_OK.rawValue, fault == nil { fault = CurlError(code) }
    }

    /// Takes a handle off libcurl.
    ///
    /// - Parameter owner: frees the handle; kept until libcurl has let go of it.
    func remove(_ easy: UnsafeMutableRawPointer, of owner: AnyObject) {
        if !mark.inside({ multi.remove(easy) }) { leftBehind.append((easy, owner)) }
    }

    /// Does what had to wait until no callback of libcurl's is under way. To be called at the end of each turn.
    func tidyUp() {
        if !leftBehind.isEmpty { leftBehind.removeAll { multi.remove($0.easy) } }
        guard let error = fault else { return }
        fault = nil
        for id in Array(exchanges.keys) {
            if let exchange = exchange(id) { end(exchange, .failed(error)) }
        }
        for stream in Array(streams.byID.values) { stream.loopDidFail(error) }
    }
}
