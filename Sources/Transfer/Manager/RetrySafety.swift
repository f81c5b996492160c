import HTTPTypes

/// Whether a request may be sent again without anyone having asked for it twice (RFC 9110, section 9.2.2).
///
/// Idempotent methods may always be, and so may a download, whatever its method: it asks for a file. Others (POST, PATCH)
/// may be where it is known that the server did not act on the request:
/// - the connection failed before the request was whole: no byte of it went out, or none of the body that it announced
///   (RFC 9112, section 8: an incomplete request is not to be acted on);
/// - the server says that it did not: 408 (no complete request in time, RFC 9110 section 15.5.9), 425 (unwilling to
///   process it yet, RFC 8470 section 5.2), 429 (too many requests, RFC 6585 section 4), 503 (unable to handle it, RFC
///   9110 section 15.6.4). 500, 502 and 504 do not say so.
///
/// Both count only where all that came before in the same attempt were redirects that keep the method and challenges:
/// after a 303 the server has acted.
struct RetrySafety: Equatable {
    static let idempotent: Set<HTTPRequest.Method> = [.get, .head, .put, .delete, .options, .trace]

    private static let refusals: Set<Int> = [408, 425, 429, 503]
    private static let preliminary: Set<Int> = [307, 308, 401, 407]

    /// One exchange of the attempt.
    struct Step: Equatable {
        /// The request was about to be sent, or was.
        var isSent: Bool
        var status: Int?
    }

    var isDownload = false
    var method: HTTPRequest.Method
    /// In their order; none where it did not come to that.
    var steps: [Step] = []
    /// The request announced a body, and no byte of it went out.
    var hasUnsentBody = false

    func allows(_ methods: Set<HTTPRequest.Method>) -> Bool {
        if isDownload || methods.contains(method) { return true }
        guard let last = steps.last else { return true }
        guard steps.dropLast().allSatisfy({ !$0.isSent || $0.status.map(Self.preliminary.contains) ?? false }) else {
            return false
        }
        if let status = last.status { return Self.refusals.contains(status) }
        return !last.isSent || hasUnsentBody
    }
}

extension RetrySafety {
    /// Of the attempt that ended last.
    init(_ request: Request) {
        let task = request.task
        isDownload = request is DownloadRequest
        method = request.original?.method ?? .get
        steps = (task?.metrics.exchanges ?? []).map { Step(isSent: $0.timeline.requestBegan != nil, status: $0.status) }
        // What the progress counts is of the body that is sent, as long as no answer has come.
        let announces = (task as? DataTask).map { $0.body.length.map { $0 > 0 } ?? true } ?? false
        hasUnsentBody = announces && task?.response == nil && task?.progress.completedBytes == 0
    }
}
