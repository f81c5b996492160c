extension Session {
    /// Creates a task for a connection; ``SessionTask/resume()`` starts it.
    ///
    /// - Parameters:
    ///   - host: a name or an address; IPv6 with or without brackets. An invalid host fails the task.
    ///   - port: a port from 1 to 65535.
    ///   - progress: counts the received bytes.
    public func streamTask(host: String, port: Int, progress: TransferProgress = TransferProgress()) -> StreamTask {
        streamTask(with: TransferRequest(url: StreamAddress.url(host: host, port: port)), progress: progress)
    }

    /// Creates a task for a connection; ``SessionTask/resume()`` starts it.
    ///
    /// - Parameters:
    ///   - request: a request whose URL is `tcp://host:port`; ``StreamTask`` describes which other properties apply.
    ///   - progress: counts the received bytes.
    public func streamTask(
        with request: TransferRequest, progress: TransferProgress = TransferProgress()
    ) -> StreamTask {
        StreamTask(request, progress: progress, session: self)
    }
}
