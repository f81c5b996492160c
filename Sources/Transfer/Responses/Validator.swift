import Glibc
import HTTPTypes

/// Judges whether an answer is one that the request can use.
struct Validator: Sendable {
    struct Answer: Sendable {
        var request: TransferRequest
        var head: ResponseHead
        var isEmpty: Bool
        /// Of data requests; a download's body is judged by its head alone.
        var data: [UInt8]?
    }

    let judge: @Sendable (Answer) -> TransferError?

    static func status(in range: some Collection<Int> & Sendable) -> Validator {
        Validator { answer in
            range.contains(answer.head.status)
                ? nil : AnswerJudgement.failure(answer.head, now: Int64(time(nil)))
        }
    }

    /// - Parameter accepted: media types, also `text/*` and `*/*`; with none, everything is accepted.
    static func contentType(in accepted: @escaping @Sendable (TransferRequest) -> [String]) -> Validator {
        Validator { answer in
            // What is empty is of any type (204 and 205 among it).
            if answer.isEmpty { return nil }
            let accepted = accepted(answer.request).compactMap(MediaType.init)
            if accepted.isEmpty { return nil }
            guard let text = answer.head.value(of: "content-type") else {
                return accepted.contains(where: \.isAny)
                    ? nil : TransferError(.unacceptableContentType, "the answer does not say of which type it is")
            }
            guard let type = MediaType(text), accepted.contains(where: { $0.matches(type) }) else {
                return TransferError(
                    .unacceptableContentType, "the answer is of type \(text.prefix(128)), which was not asked for")
            }
            return nil
        }
    }

    /// The types that a request says it accepts (RFC 9110, section 12.5.1); without a word of its own, any.
    static func accepted(by request: TransferRequest) -> [String] {
        guard let field = request.headerFields[.accept] else { return ["*/*"] }
        return field.split(separator: ",").map { String($0.prefix { $0 != ";" }) }
    }
}

/// `type/subtype`, either of them possibly `*`.
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
