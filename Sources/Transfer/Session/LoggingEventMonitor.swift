public import HTTPMessages

/// An event monitor that writes a line of text for each event.
///
///     let monitor = LoggingEventMonitor { print($0) }
///     let manager = try SessionManager(eventMonitors: [monitor])
///
/// A line begins with the number of the request, as in `request 7: received 404, text/html, 162 bytes`. The line of the
/// end has the time since the request was first resumed, which includes the waits between its attempts. Secrets are
/// left out: user, password and the values of the query in a URL, credentials, and every header field that may contain
/// one. Control characters become spaces, so that a server cannot forge a line.
public struct LoggingEventMonitor: EventMonitor {
    private let log: @Sendable (String) -> Void

    /// - Parameter log: takes a line without its end, in the order of the events. It may block.
    public init(log: @escaping @Sendable (String) -> Void) {
        self.log = log
    }

    private func write(_ request: Request, _ text: String) {
        log("request \(request.id): \(ReadableText.line(text))")
    }

    public func requestDidCreate(_ request: Request) {
        write(request, "created, \(request.original?.description ?? "which cannot be made")")
    }

    public func requestDidResume(_ request: Request) { write(request, "resumed") }
    public func requestDidSuspend(_ request: Request) { write(request, "suspended") }
    public func requestDidCancel(_ request: Request) { write(request, "cancelled") }

    public func request(_ request: Request, didFailToAdapt original: TransferRequest, with error: TransferError) {
        write(request, "adapter failed: \(Self.text(error))")
    }

    public func request(_ request: Request, didCreate task: any SessionTask) {
        write(request, "sends \(request.curlCommand(for: task.originalRequest))")
    }

    public func request(_ request: Request, didReceive head: ResponseHead) {
        var text = "received \(head.status)"
        if let type = head.value(of: "content-type") { text += ", \(type)" }
        if let length = head.contentLength { text += ", \(length) bytes" }
        if let location = head.value(of: "location") { text += ", location \(URLRedaction.redact(location))" }
        write(request, text)
    }

    public func request(_ request: Request, didValidate head: ResponseHead, with error: TransferError?) {
        if let error { write(request, "rejected \(head.status): \(Self.text(error))") }
    }

    public func request(_ request: Request, attemptDidEndWith error: TransferError?) {
        if let error { write(request, "attempt failed: \(Self.text(error))") }
    }

    public func request(_ request: Request, willRetryAfter error: TransferError) {
        write(request, "retry \(request.retryCount)")
    }

    public func request(_ request: Request, didCompleteWith error: TransferError?) {
        write(request, (error.map { "failed: \(Self.text($0))" } ?? "completed") + Self.duration(of: request))
    }

    private static func text(_ error: TransferError) -> String { "\(error.code.rawValue), \(error.message)" }

    /// Returns the time since the request was first resumed; empty if it never was.
    private static func duration(of request: Request) -> String {
        request.delegate.elapsed.map { " after \($0) ms" } ?? ""
    }
}
