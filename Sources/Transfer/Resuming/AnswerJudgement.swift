/// Decides what the head of an answer means for a part file, before a byte of the body is taken: a pure function
/// of what was asked, what is there, and what came back.
struct AnswerJudgement {
    /// The first byte that was asked for; `nil` where the whole was.
    var askedFrom: Int64?
    /// Bytes at the front of the part that are there.
    var have: Int64
    /// Of the version that the part was begun from.
    var validator: ResourceValidator?
    /// Whether the validator came from the URL that was asked: then its being the same says something.
    var isVouched = true
    /// Whether the server was asked with `If-Range`.
    var isConditional = false
    /// Whether the server was asked for the last bytes that are here, since it said that nothing follows them.
    var isConfirming = false
    var total: Int64?
    /// Of the whole resource, as the server stated it before.
    var digest: FileDigest?
    /// The last segment of the URL's path: tells a coded file from a coded transfer.
    var pathSuffix: String

    enum Verdict: Equatable {
        /// The body goes to `offset`; bytes before `have` are compared, not written.
        case accept(offset: Int64, length: Int64?, total: Int64?)
        /// This very body is the whole resource, to be kept from 0 as a new generation.
        case restart(length: Int64?)
        /// This very body, decoded, is the whole resource. How long that is will show, and no part of it can be asked
        /// for.
        case decode(BodyDecoder.Coding)
        /// Nothing is left to fetch.
        case complete
        /// Take nothing, forget the part, ask again for the whole.
        case askAgain(reason: String)
        /// Take nothing, keep the part, and ask without `If-Range`, comparing an overlap: the server sends the whole
        /// though it says that nothing has changed, or a part that nothing ties to what is here.
        case askUnconditionally
        /// Take nothing, keep the part, and ask for its last bytes: the server says that nothing follows them, and nobody
        /// said before how long the file is.
        case confirmEnd
        case fail(TransferError)
    }

    func judge(_ head: ResponseHead, now: Int64) -> Verdict {
        if (200...299).contains(head.status), head.contentLength == nil, head.value(of: "content-length") != nil {
            // libcurl passes over a number that is too large; then nothing would say where the body ends.
            return .fail(TransferError(.truncated, "the server states a length that is none"))
        }
        return judgeStatus(head, now: now)
    }

    private func judgeStatus(_ head: ResponseHead, now: Int64) -> Verdict {
        switch head.status {
        case 206: partial(head)
        case 200, 203: whole(head)
        case 204 where askedFrom != nil, 205 where askedFrom != nil:
            .fail(TransferError(.truncated, "the server answers without content (\(head.status))"))
        case 416 where askedFrom != nil: unsatisfiable(head)
        case 412 where askedFrom != nil: .askAgain(reason: "the server says that the file has changed (412)")
        default: .fail(Self.failure(head, now: now))
        }
    }

    private func partial(_ head: ResponseHead) -> Verdict {
        guard let askedFrom else {
            return .askAgain(reason: "the server sent a part though the whole was asked for")
        }
        if let type = head.value(of: "content-type"), type.lowercased().hasPrefix("multipart/byteranges") {
            return .askAgain(reason: "the server answered one range with several parts")
        }
        if head.contentCoding != nil { return .askAgain(reason: "the server coded a part though identity was asked") }
        guard let range = Self.range(of: head), let bounds = range.bounds else {
            return .askAgain(reason: "the server sent a part without saying which")
        }
        let tags = head.values(of: "etag")
        guard tags.allSatisfy({ $0 == tags.first }) else {
            return .askAgain(reason: "the server names two versions of the part")
        }
        if let total, let theirs = range.total, theirs != total {
            return .askAgain(reason: "the file's size changed from \(total) to \(theirs) bytes")
        }
        if let validator, !validator.agrees(with: head.validator) {
            return .askAgain(reason: "the file on the server has changed")
        }
        if isOther(head.representationDigest) { return .askAgain(reason: "the file on the server has changed") }
        guard bounds.lowerBound <= max(askedFrom, 0) else {
            return .askAgain(reason: "the server sent a later part than was asked for")
        }
        let length = bounds.upperBound - bounds.lowerBound + 1
        if let stated = head.contentLength, stated != length {
            return .askAgain(reason: "the part's length contradicts its range")
        }
        if let validator, !validator.isShown(by: head.validator), !isStated(head.representationDigest) {
            // An overlap alone does not make one file of those at two places.
            if !isVouched { return .askAgain(reason: "nothing tells that it is the same file there") }
            // A server that passes over `If-Range` and names no version may send any.
            if isConditional { return .askUnconditionally }
        }
        return .accept(offset: bounds.lowerBound, length: length, total: range.total ?? total)
    }

    private func whole(_ head: ResponseHead) -> Verdict {
        if let coding = head.contentCoding {
            if askedFrom != nil { return .askAgain(reason: "the server coded the body though identity was asked") }
            guard Self.isSuffix(pathSuffix, of: coding) else {
                if let known = BodyDecoder.Coding(coding) { return .decode(known) }
                return .fail(
                    TransferError(.invalidRequest, "the server sends the file coded (\(coding)) though asked not to"))
            }
        }
        if head.value(of: "content-range") != nil {
            // Some servers say 200 and mean 206; only numbers that fit make it one.
            if let askedFrom, let range = Self.range(of: head), let bounds = range.bounds,
                bounds.lowerBound == askedFrom, bounds.upperBound - bounds.lowerBound + 1 == head.contentLength,
                range.total == total, total != nil, isVouched, let validator, validator.agrees(with: head.validator),
                !isOther(head.representationDigest)
            {
                // As with a 206: silence about the version is none of `If-Range`'s answers.
                if isConditional, !validator.isShown(by: head.validator), !isStated(head.representationDigest) {
                    return .askUnconditionally
                }
                return .accept(offset: bounds.lowerBound, length: head.contentLength, total: total)
            }
            if askedFrom != nil { return .askAgain(reason: "a 200 with a Content-Range that does not fit") }
        }
        let isSame = isSame(head)
        if isSame, isConditional, askedFrom ?? 0 > 0 { return .askUnconditionally }
        if isSame, askedFrom != nil, let total, let theirs = head.contentLength, theirs != total {
            return .fail(
                TransferError(
                    .truncated,
                    "the server says that the file has \(theirs) bytes and, under the same entity tag, \(total)"))
        }
        // Of one version the length is known, whether this answer says it or not.
        return .restart(length: head.contentLength ?? (isSame ? total : nil))
    }

    private func unsatisfiable(_ head: ResponseHead) -> Verdict {
        let refusal = Verdict.askAgain(reason: "the server has no such range (416)")
        guard let range = Self.range(of: head), range.bounds == nil, let theirs = range.total, theirs == have else {
            return refusal
        }
        if isSame(head), total == have { return .complete }
        // Nobody said so before: the body broke off, and that it did so at the end would be an accident.
        if total == nil, isSame(head) { return isConfirming ? .complete : .confirmEnd }
        // Many servers leave the tag out of this answer. The last bytes are to show the version.
        let isSilent = isVouched && validator?.strongEntityTag != nil && head.validator.entityTag == nil
        return total == nil && isSilent && !isConfirming ? .confirmEnd : refusal
    }

    /// Whether a strong tag says that it is the version that is known.
    private func isSame(_ head: ResponseHead) -> Bool {
        guard isVouched, let validator, let tag = validator.strongEntityTag else { return false }
        return tag == head.validator.strongEntityTag && validator.agrees(with: head.validator)
    }

    /// Whether a digest is of other bytes.
    private func isOther(_ theirs: FileDigest?) -> Bool {
        guard let digest, let theirs else { return false }
        return digest.contradicts(theirs)
    }

    /// Whether a digest says that the bytes are the same.
    private func isStated(_ theirs: FileDigest?) -> Bool { digest != nil && digest == theirs }

    /// Why an answer that is no part cannot be of the version that is known; `nil` where nothing says so.
    func contradiction(in head: ResponseHead) -> String? {
        guard (200...299).contains(head.status) || head.status == 412 else { return nil }
        if head.status == 412 { return "the server says that the file has changed (412)" }
        if let validator, !validator.agrees(with: head.validator) { return "the file on the server has changed" }
        if isOther(head.representationDigest) { return "the file on the server has changed" }
        let theirs =
            head.status == 206
            ? Self.range(of: head)?.total : head.contentLength
        if let total, let theirs, theirs != total, head.contentCoding == nil {
            return "the file's size changed from \(total) to \(theirs) bytes"
        }
        return nil
    }

    /// The reason why a source that was never asked before has another file than the one whose bytes are here; `nil`
    /// where the answer does not show that.
    func otherFile(in head: ResponseHead) -> String? {
        if let reason = contradiction(in: head) { return reason }
        guard head.status == 416, let total, Self.range(of: head)?.total != total else { return nil }
        return "the server has no such range (416)"
    }

    /// What range an answer says that it brings; `nil` also where several fields contradict each other.
    private static func range(of head: ResponseHead) -> ContentRange? {
        let ranges = head.values(of: "content-range").map(ContentRange.init)
        guard let range = ranges.first ?? nil, ranges.allSatisfy({ $0 == range }) else { return nil }
        return range
    }

    /// What a status means that is no success.
    static func failure(_ head: ResponseHead, now: Int64) -> TransferError {
        TransferError(
            .httpStatus, words(for: head.status), httpStatus: head.status, retryAfter: head.retryAfter(now: now))
    }

    /// A status that is no success, for a person.
    static func words(for status: Int) -> String {
        switch status {
        case 204, 205: "the server answers without a file (\(status))"
        case 401: "the server wants a user and password (401)"
        case 403: "the server refuses access (403)"
        case 407: "the proxy wants a user and password (407): its URL can hold them"
        case 404: "there is no such file on the server (404)"
        case 410: "the file is gone from the server for good (410)"
        case 429: "the server asks for fewer requests (429)"
        case 500...599: "the server failed (\(status))"
        default: "the server answered with status \(status)"
        }
    }

    /// A file that is itself compressed is often labelled with its coding; the bytes are then the file.
    private static func isSuffix(_ path: String, of coding: String) -> Bool {
        let suffixes: [String: [String]] = [
            "gzip": [".gz", ".tgz", ".gzip"], "x-gzip": [".gz", ".tgz", ".gzip"], "br": [".br"],
            "zstd": [".zst"], "compress": [".z"], "deflate": [".zz"],
        ]
        return suffixes[coding]?.contains { path.lowercased().hasSuffix($0) } ?? false
    }
}
