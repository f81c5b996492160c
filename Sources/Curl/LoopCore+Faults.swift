import CCurl

/// An owner of an easy handle that its stream has given up.
final class HandleOwner {
    private let handle: EasyHandle

    init(_ handle: consuming EasyHandle) { self.handle = handle }
}

/// The loop's handling of failed libcurl calls.
extension LoopCore {
    /// Records the result of a call that affects all transfers.
    ///
    /// After a failure, libcurl may wait for sockets that the loop does not watch, and for a deadline that the loop
    /// does not know. It does not report which transfers are affected.
    func record(_ code: CURLMcode) {
        // CURLM_CALL_MULTI_PERFORM, below CURLM_OK, is not a failure.
        if code.rawValue > CURLM_OK.rawValue, fault == nil { fault = CurlError(code) }
    }

    /// Removes a handle from libcurl.
    ///
    /// - Parameter owner: the owner that frees the handle, kept until libcurl has released the handle.
    func remove(_ easy: UnsafeMutableRawPointer, of owner: AnyObject) {
        if !mark.inside({ multi.remove(easy) }) { leftBehind.append((easy, owner)) }
    }

    /// Does the work that must not be done within a libcurl callback. Called at the end of each turn.
    func runDeferredWork() {
        if !leftBehind.isEmpty { leftBehind.removeAll { multi.remove($0.easy) } }
        guard let error = fault else { return }
        fault = nil
        for id in Array(exchanges.keys) {
            if let exchange = exchange(id) { end(exchange, .failed(error)) }
        }
        for stream in Array(streams.byID.values) { stream.loopDidFail(error) }
    }
}
