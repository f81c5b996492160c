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
    }

    let evaluate: @Sendable (Answer) -> TransferError?

    static func status(in range: some Collection<Int> & Sendable) -> Validator {
        Validator { answer in
            range.contains(answer.head.status)
                ? nil : ResponseEvaluator.failure(answer.head, now: Int64(time(nil)))
        }
    }

    /// Creates a check of the `Content-Type` field.
    ///
    /// - Parameter accepted: the accepted media types, including `text/*` and `*/*`. An empty list accepts only an
    ///   empty body.
    static func contentType(in accepted: @escaping @Sendable (TransferRequest) -> [String]) -> Validator {
        Validator { answer in
            // An empty body is acceptable as any type; this includes 204 and 205.
            if answer.isEmpty { return nil }
            let accepted = accepted(answer.request).compactMap(MediaType.init)
            guard let text = answer.head.value(of: "content-type") else {
                return accepted.contains(where: \.isAny)
                    ? nil : TransferError(.unacceptableContentType, "the response has no Content-Type")
            }
            guard let type = MediaType(text), accepted.contains(where: { $0.matches(type) }) else {
                return TransferError(
                    .unacceptableContentType, "the response has the type \(text.prefix(128)), which was not requested")
            }
            return nil
        }
    }

    /// Returns the types in the request's `Accept` field (RFC 9110, section 12.5.1), or `*/*` without the field.
    static func accepted(by request: TransferRequest) -> [String] {
        let types = request.headerFields[.accept]?.split(separator: ",").map { String($0.prefix { $0 != ";" }) } ?? []
        // A field that names no media type asks for none in particular.
        return types.contains { MediaType($0) != nil } ? types : ["*/*"]
    }
}

/// A media type `type/subtype`; either part may be `*`.
struct MediaType: Sendable, Equatable {
    let type: String
    let subtype: String

    init?(_ text: String) {
        let words = text.prefix { $0 != ";" }.split(separator: "/", omittingEmptySubsequences: false)
            .map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
        guard words.count == 2, !words[0].isEmpty, !words[1].isEmpty else { return nil }
        type = words[0]
        subtype = words[1]
    }

    var isAny: Bool { type == "*" && subtype == "*" }

    func matches(_ other: MediaType) -> Bool {
        (type == "*" || type == other.type) && (subtype == "*" || subtype == other.subtype)
    }
}
