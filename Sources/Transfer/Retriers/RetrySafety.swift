import HTTPTypes

/// A test for whether a request may be sent again although the server may have acted on it (RFC 9110, section 9.2.2).
///
/// Idempotent methods may always be repeated. Other methods (POST, PATCH) may be repeated if the server is known not to
/// have acted on the request:
/// - the connection failed before the request was complete: no byte was sent, or no byte of the body that it announced
///   (RFC 9112, section 8: an incomplete request must not be acted on);
/// - the server says so: 408 (no complete request in time, RFC 9110 section 15.5.9), 425 (unwilling to process it yet,
///   RFC 8470 section 5.2), 429 (too many requests, RFC 6585 section 4), 503 (unable to handle it, RFC 9110 section
///   15.6.4). 500, 502 and 504 do not say so.
///
/// Both apply only if all earlier exchanges of the same attempt were challenges or redirects that keep the method:
/// after a 303 the server has acted.
struct RetrySafety: Equatable {
    static let idempotent: Set<HTTPRequest.Method> = [.get, .head, .put, .delete, .options, .trace]

    private static let refusals: Set<Int> = [408, 425, 429, 503]
    private static let preliminary: Set<Int> = [307, 308, 401, 407]

    /// An exchange of the attempt.
    struct Step: Equatable {
        /// Whether the request was, or was about to be, sent.
        var isSent: Bool
        var status: Int?
    }

    var method: HTTPRequest.Method
    /// The exchanges in order; empty if there were none.
    var steps: [Step] = []
    /// Whether the request announced a body and sent no byte of it.
    var hasUnsentBody = false

    func allows(_ methods: Set<HTTPRequest.Method>) -> Bool {
        if methods.contains(method) { return true }
        guard let last = steps.last else { return true }
        guard steps.dropLast().allSatisfy({ !$0.isSent || $0.status.map(Self.preliminary.contains) ?? false }) else {
            return false
        }
        if let status = last.status { return Self.refusals.contains(status) }
        return !last.isSent || hasUnsentBody
    }
}

extension RetrySafety {
    /// Creates the test for the attempt that ended last.
    init(_ request: Request) {
        let task = request.task
        method = request.original?.method ?? .get
        steps = (task?.metrics.exchanges ?? []).map { Step(isSent: $0.timeline.requestBegan != nil, status: $0.status) }
        let body = (task as? DataTask)?.body ?? (task as? DownloadTask)?.body ?? .none
        let announces = body.length.map { $0 > 0 } ?? true
        hasUnsentBody = announces && task?.response == nil && (task as? any LoopTask)?.core.sentBodyBytes == 0
    }
}
