import HTTPTypes

/// The interpretation of a response head for a part file, before a byte of the body is accepted. It is a pure function
/// of the request, the state of the part, and the response.
struct ResponseEvaluator {
    /// The first byte requested; `nil` if the whole resource was requested.
    var askedFrom: Int64?
    /// The number of contiguous bytes at the start of the part.
    var have: Int64
    /// The validator of the version that the part was started from.
    var validator: ResourceValidator?
    /// Whether the validator came from the requested URL. Only then does an equal validator prove the same version.
    var isVouched = true
    /// Whether the request had an `If-Range`.
    var isConditional = false
    /// Whether the request was for the last bytes of the part, because the server had said that no bytes follow them.
    var isConfirming = false
    var total: Int64?
    /// The digest of the whole resource, as sent by the server earlier.
    var digest: FileDigest?
    /// The bytes that a response for the whole resource would replace; `nil` if there are none.
    var present: Present?
    /// The statuses whose response is an empty file.
    var emptyStatuses: Set<Int> = []
    /// The kind of credential that was sent, if the response rejects it.
    var sentCredential: SentCredential?
    /// The path of the URL. It distinguishes a compressed file from a compressed transfer.
    var pathSuffix: String

    /// The facts about the bytes of the part that decide whether another version may replace them.
    struct Present {
        /// The media type of their version.
        var mediaType: String?
        /// The other version that an earlier response claimed.
        var unconfirmed: UnconfirmedVersion?
        /// The time of the present request, in milliseconds since 1970.
        var requestedAt: Int64
        /// The shortest time between two requests whose responses confirm each other, in milliseconds.
        var confirmationDelay: Int64
    }

    enum Verdict: Equatable {
        /// The body is written at `offset`. Bytes before `have` are compared, not written.
        case accept(offset: Int64, length: Int64?, total: Int64?)
        /// The body is the whole resource, to be stored from 0 as a new generation.
        case restart(length: Int64?)
        /// The decoded body is the whole resource. Its length is unknown until the end, and no range of it can be
        /// requested.
        case decode([BodyDecoder.Coding])
        /// The body is not read, and the part is kept: the response claims another version and does not prove it. A
        /// login page looks like that.
        case unconfirmed(UnconfirmedVersion)
        /// The part is complete.
        case complete
        /// The body is not read. The part is discarded and the whole resource requested again.
        case askAgain(reason: String)
        /// The body is not read, and the part is kept. The next request has no `If-Range` and compares an overlap. The
        /// server sent the whole resource although it reported no change, or it sent a part without evidence of the
        /// same version.
        case askUnconditionally
        /// The body is not read, and the part is kept. The next request is for its last bytes: the server says that no
        /// bytes follow them, and the length of the file was unknown before.
        case confirmEnd
        case fail(TransferError)
    }

    func evaluate(_ head: ResponseHead, now: Int64) -> Verdict {
        if (200...299).contains(head.status), head.hasInvalidContentLength { return .fail(.invalidContentLength) }
        return evaluateStatus(head, now: now)
    }

    private func evaluateStatus(_ head: ResponseHead, now: Int64) -> Verdict {
        switch head.status {
        case 206: partial(head)
        case 200, 203: whole(head)
        case let status where askedFrom == nil && emptyStatuses.contains(status): replace(head, .restart(length: 0))
        case 204 where askedFrom != nil, 205 where askedFrom != nil:
            .fail(TransferError(.truncated, "the server sent a response without content (\(head.status))"))
        case 416 where askedFrom != nil: unsatisfiable(head)
        case 412 where askedFrom != nil: .askAgain(reason: "the server says that the file has changed (412)")
        default: .fail(Self.failure(head, now: now, sentCredential: sentCredential))
        }
    }

    private func partial(_ head: ResponseHead) -> Verdict {
        if head.mediaType == "multipart/byteranges" {
            return .askAgain(reason: "the server sent several parts for one range")
        }
        if !codings(of: head).isEmpty {
            return .askAgain(reason: "the server compressed a range although that was not requested")
        }
        guard let range = Self.range(of: head), let bounds = range.bounds else {
            let fault = head.value(of: "content-range") == nil ? "without a" : "with an invalid"
            return .askAgain(reason: "the server sent a range \(fault) Content-Range")
        }
        let tags = head.values(of: "etag")
        guard tags.allSatisfy({ $0 == tags.first }) else {
            return .askAgain(reason: "the server sent two validators for the range")
        }
        let length = bounds.upperBound - bounds.lowerBound + 1
        guard let askedFrom else {
            // Some servers send the whole as a range to a request for the whole.
            guard bounds.lowerBound == 0, length == range.total, head.contentLength ?? length == length else {
                return .askAgain(reason: "the server sent a range although the whole file was requested")
            }
            return replace(head, .restart(length: length))
        }
        if let total, let theirs = range.total, theirs != total {
            return .askAgain(reason: "the file's size changed from \(total) to \(theirs) bytes")
        }
        if let validator, !validator.agrees(with: head.validator) {
            return .askAgain(reason: "the file on the server has changed")
        }
        if isOther(head.representationDigest) { return .askAgain(reason: "the file on the server has changed") }
        guard bounds.lowerBound <= max(askedFrom, 0) else {
            return .askAgain(reason: "the server sent a later range than requested")
        }
        if let stated = head.contentLength, stated != length {
            return .askAgain(reason: "the length of the response contradicts its range")
        }
        if let validator, !validator.isShown(by: head.validator), !isStated(head.representationDigest) {
            // An overlap alone does not prove that two URLs have the same file.
            if !isVouched { return .askAgain(reason: "nothing confirms that the file on the server is the same") }
            // A server that ignores `If-Range` and sends no validator may send any version.
            if isConditional { return .askUnconditionally }
        }
        return .accept(offset: bounds.lowerBound, length: length, total: range.total ?? total)
    }

    private func whole(_ head: ResponseHead) -> Verdict {
        let codings = codings(of: head)
        if !codings.isEmpty {
            guard askedFrom == nil else {
                return .askAgain(reason: "the server encoded the body although identity was requested")
            }
            return replace(head, .decode(codings))
        }
        if head.value(of: "content-range") != nil {
            // Some servers send 200 instead of 206. The response is treated as a 206 only if all numbers match.
            if let askedFrom, let range = Self.range(of: head), let bounds = range.bounds,
                bounds.lowerBound == askedFrom, bounds.upperBound - bounds.lowerBound + 1 == head.contentLength,
                range.total == total, total != nil, isVouched, let validator, validator.agrees(with: head.validator),
                !isOther(head.representationDigest)
            {
                // As for a 206, a response to `If-Range` without a validator is no evidence of the same version.
                if isConditional, !validator.isShown(by: head.validator), !isStated(head.representationDigest) {
                    return .askUnconditionally
                }
                return .accept(offset: bounds.lowerBound, length: head.contentLength, total: total)
            }
            if askedFrom != nil {
                return .askAgain(reason: "the server sent a 200 with a Content-Range that does not match")
            }
            // A range under another status. Without a contradiction of its numbers the field would have no meaning (RFC
            // 9110, section 14.4).
            if let range = Self.range(of: head), let bounds = range.bounds, let total = range.total,
                bounds.upperBound - bounds.lowerBound + 1 == head.contentLength, head.contentLength != total
            {
                return .askAgain(reason: "the server sent a range although the whole file was requested")
            }
        }
        let isSame = isSame(head)
        if isSame, isConditional, askedFrom ?? 0 > 0 { return .askUnconditionally }
        if isSame, askedFrom != nil, let total, let theirs = head.contentLength, theirs != total {
            return .fail(
                TransferError(
                    .truncated,
                    "the server reported \(theirs) bytes, and \(total) bytes for the same entity tag"))
        }
        // The length of a known version is known even if this response omits it.
        return replace(head, .restart(length: head.contentLength ?? (isSame ? total : nil)))
    }

    /// Returns the verdict by which a response for the whole resource replaces the part, if it may.
    ///
    /// The conditions are that there is nothing to replace, or that the response shows its version: that of the part by
    /// tag, digest, or length and type where there are no validators; or another one by a strong validator and the same
    /// media type. Otherwise a second response has to agree with an earlier one.
    private func replace(_ head: ResponseHead, _ verdict: Verdict) -> Verdict {
        guard let present, !isSame(head), !isStated(head.representationDigest) else { return verdict }
        if head.validator.ifRange != nil, head.mediaType == present.mediaType { return verdict }
        let length: Int64? = if case .restart(let length) = verdict { length } else { nil }
        var version = UnconfirmedVersion(head, length: length, requestedAt: present.requestedAt)
        // Nothing tells the version of the part from this one: the server states no validators and sends the whole again.
        if validator?.ifRange == nil, validator?.agrees(with: head.validator) ?? true, length == total,
            head.mediaType == present.mediaType
        {
            return verdict
        }
        guard let earlier = present.unconfirmed,
            earlier.agrees(with: version, typeOfPart: present.mediaType)
        else { return .unconfirmed(version) }
        let elapsed = present.requestedAt.subtractingReportingOverflow(earlier.requestedAt)
        // The clock may have been set back.
        guard !elapsed.overflow, elapsed.partialValue >= 0 else { return .unconfirmed(version) }
        if elapsed.partialValue >= present.confirmationDelay { return verdict }
        version.requestedAt = earlier.requestedAt
        return .unconfirmed(version)
    }

    private func unsatisfiable(_ head: ResponseHead) -> Verdict {
        let refusal = Verdict.askAgain(reason: "the server does not have the range (416)")
        guard let range = Self.range(of: head), range.bounds == nil, let theirs = range.total, theirs == have else {
            return refusal
        }
        if isSame(head), total == have { return .complete }
        // The length was unknown before, because the body was interrupted. An interruption exactly at the end of the
        // file would be a coincidence.
        if total == nil, isSame(head) { return isConfirming ? .complete : .confirmEnd }
        // Many servers omit the ETag from a 416. A request for the last bytes is to show the version.
        let isSilent = isVouched && validator?.strongEntityTag != nil && head.validator.entityTag == nil
        return total == nil && isSilent && !isConfirming ? .confirmEnd : refusal
    }

    /// Returns whether a strong ETag proves that the response is of the known version.
    private func isSame(_ head: ResponseHead) -> Bool {
        guard isVouched, let validator, let tag = validator.strongEntityTag else { return false }
        return tag == head.validator.strongEntityTag && validator.agrees(with: head.validator)
    }

    /// Returns whether a digest is of different content.
    private func isOther(_ theirs: FileDigest?) -> Bool {
        guard let digest, let theirs else { return false }
        return digest.contradicts(theirs)
    }

    /// Returns whether a digest proves that the content is the same.
    private func isStated(_ theirs: FileDigest?) -> Bool { digest != nil && digest == theirs }

    /// Returns the reason why a response other than a part cannot be of the known version; `nil` if it does not
    /// contradict it.
    func contradiction(in head: ResponseHead) -> String? {
        guard (200...299).contains(head.status) || head.status == 412 else { return nil }
        if head.status == 412 { return "the server says that the file has changed (412)" }
        if let validator, !validator.agrees(with: head.validator) { return "the file on the server has changed" }
        if isOther(head.representationDigest) { return "the file on the server has changed" }
        let theirs =
            head.status == 206
            ? Self.range(of: head)?.total : head.contentLength
        if let total, let theirs, theirs != total, codings(of: head).isEmpty {
            return "the file's size changed from \(total) to \(theirs) bytes"
        }
        return nil
    }

    /// Returns the reason why a source that was not contacted before has a different file; `nil` if the response does
    /// not prove it.
    func otherFile(in head: ResponseHead) -> String? {
        if let reason = contradiction(in: head) { return reason }
        guard head.status == 416, let total, Self.range(of: head)?.total != total else { return nil }
        return "the server does not have the range (416)"
    }

    /// Returns the response's `Content-Range`; `nil` also if several fields contradict each other.
    private static func range(of head: ResponseHead) -> ContentRange? {
        let ranges = head.values(of: "content-range").map(ContentRange.init)
        guard let range = ranges.first ?? nil, ranges.allSatisfy({ $0 == range }) else { return nil }
        return range
    }

    /// Returns the error for an unsuccessful status.
    ///
    /// - Parameters:
    ///   - method: the method of the request.
    ///   - sentCredential: the kind of credential that was sent, if the response rejects it.
    static func failure(
        _ head: ResponseHead, of method: HTTPRequest.Method = .get, now: Int64, sentCredential: SentCredential? = nil
    ) -> TransferError {
        var refusal: ProxyRefusal?
        if case .proxy(let proxy) = sentCredential { refusal = proxy }
        return TransferError(
            .httpStatus,
            unsupportedLogin(head, refusal) ?? refusal?.words(for: head.status)
                ?? words(for: head.status, of: method, sentCredential),
            httpStatus: head.status, retryAfter: head.retryAfter(now: now), underlying: refusal)
    }

    /// Returns the description of a demand for a login by schemes that are all unsupported; `nil` for another one.
    private static func unsupportedLogin(_ head: ResponseHead, _ refusal: ProxyRefusal?) -> String? {
        guard let offers = Authorization.offers(of: head), !offers.isEmpty, Authorization.choose(among: offers) == nil
        else { return nil }
        let schemes = Set(
            offers.map { $0.scheme == "digest" ? "digest of another kind" : String($0.scheme.prefix(16)) })
        let who = head.status == 401 ? "the server" : refusal.map { "the proxy \($0.proxy)" } ?? "the proxy"
        return "\(who) accepts only logins that are not supported: "
            + "\(schemes.sorted().joined(separator: ", ")) (\(head.status))"
    }

    /// Returns a description of an unsuccessful status for people.
    ///
    /// - Parameters:
    ///   - method: the method of the request.
    ///   - sentCredential: the kind of credential that was sent, if the response rejects it.
    static func words(
        for status: Int, of method: HTTPRequest.Method = .get, _ sentCredential: SentCredential? = nil
    ) -> String {
        switch status {
        case 202: "the server has not made the file yet (202)"
        case 204, 205: "the server sent a response without a file (\(status))"
        case 401 where sentCredential == .token: "the server rejected the bearer token (401)"
        case 401 where sentCredential == .password: "the server rejected the user name and password (401)"
        case 401: "the server requires a user name and password (401)"
        case 403: "the server refuses access (403)"
        case 407: "a proxy requires a user name and password (407)"
        case 404 where method == .put || method == .post: "the server has nothing at this URL (404)"
        case 404: "there is no such file on the server (404)"
        case 405 where method == .put || method == .post:
            "the server does not allow \(method.rawValue) at this URL (405)"
        case 501 where method == .put || method == .post: "the server does not support \(method.rawValue) (501)"
        case 410: "the file is gone from the server for good (410)"
        case 429: "the server asks for fewer requests (429)"
        case 500...599: "the server failed (\(status))"
        default: "the server answered with status \(status)"
        }
    }

    /// Returns the codings of a response that have to be undone.
    private func codings(of head: ResponseHead) -> [BodyDecoder.Coding] {
        let codings = head.contentCodings
        if codings.isEmpty { return [] }
        return BodyDecoder.undone(codings, ofFile: [pathSuffix, head.suggestedFileName ?? ""])
    }
}

extension TransferError {
    static let invalidContentLength = TransferError(.truncated, "the server sent an invalid Content-Length")
}
