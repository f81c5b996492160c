import FoundationEssentials
import Glibc
import HTTPTypes

/// A check whether a response is acceptable for its request.
struct Validator: Sendable {
    struct Answer: Sendable {
        var request: TransferRequest
        var head: ResponseHead
        var isEmpty: Bool
        /// The body of a data request; `nil` for a download, which is validated by its head alone.
        var data: Data?
        /// The kind of credential that was sent, if the response rejects it.
        var sentCredential: SentCredential?
    }

    let evaluate: @Sendable (Answer) -> TransferError?

    /// The check of the status, and of the media type against the request's `Accept`. It is shared by all requests.
    static let standard: Validator = {
        let (status, contentType) = (Validator.status(in: 200..<300), Validator.contentType(in: accepted))
        return Validator { status.evaluate($0) ?? contentType.evaluate($0) }
    }()

    static func status(in range: some Collection<Int> & Sendable) -> Validator {
        Validator { answer in
            range.contains(answer.head.status)
                ? nil
                : ResponseEvaluator.failure(
                    answer.head, of: answer.request.method, now: Int64(time(nil)), sentCredential: answer.sentCredential
                )
        }
    }

    /// Creates a check of the `Content-Type` field.
    ///
    /// - Parameter accepted: the accepted media types, including `text/*` and `*/*`; `nil` for any. An empty list
    ///   accepts only an empty body.
    static func contentType(in accepted: @escaping @Sendable (TransferRequest) -> [String]?) -> Validator {
        Validator { answer in
            // An empty body is acceptable as any type; this includes 204 and 205.
            if answer.isEmpty { return nil }
            guard let accepted = accepted(answer.request)?.compactMap(MediaType.init) else { return nil }
            if accepted.contains(where: \.isAny) { return nil }
            guard let text = answer.head.value(of: "content-type") else {
                return TransferError(.unacceptableContentType, "the response has no Content-Type")
            }
            guard let type = MediaType(text), accepted.contains(where: { $0.matches(type) }) else {
                return TransferError(
                    .unacceptableContentType, "the response has the type \(text.prefix(128)), which was not requested")
            }
            return nil
        }
    }

    /// Returns the types in the request's `Accept` field (RFC 9110, section 12.5.1); `nil` without the field.
    static func accepted(by request: TransferRequest) -> [String]? {
        guard let field = request.headerFields[.accept] else { return nil }
        let types = field.split(separator: ",").map { String($0.prefix { $0 != ";" }) }
        // A field that names no media type asks for none in particular.
        return types.contains { MediaType($0) != nil } ? types : nil
    }
}

/// A media type `type/subtype`; either part may be `*`.
struct MediaType: Sendable, Equatable {
    let type: String
    let subtype: String

    init?(_ text: String) {
        let essence = text.utf8.prefix { $0 != UInt8(ascii: ";") }
        guard let slash = essence.firstIndex(of: UInt8(ascii: "/")) else { return nil }
        let rest = essence[essence.index(after: slash)...]
        guard !rest.contains(UInt8(ascii: "/")) else { return nil }
        type = Self.part(essence[..<slash])
        subtype = Self.part(rest)
        guard !type.isEmpty, !subtype.isEmpty else { return nil }
    }

    /// Returns a part in lower case, without white space.
    private static func part(_ bytes: Substring.UTF8View) -> String {
        String(decoding: bytes.filter { $0 != 0x20 && $0 != 0x09 }, as: UTF8.self).lowercased()
    }

    var isAny: Bool { type == "*" && subtype == "*" }

    func matches(_ other: MediaType) -> Bool {
        (type == "*" || type == other.type) && (subtype == "*" || subtype == other.subtype)
    }
}
