/// Error text for a response that cannot be decoded, in place of the decoder's own message.
enum AnswerFault {
    /// Returns the coding path of the field that failed to decode, such as `result.tasks[3].state`, or a fixed text
    /// where the error carries no path.
    static func text(of error: any Error) -> String {
        var path: [any CodingKey] = []
        switch error as? DecodingError {
        case .keyNotFound(let key, let context): path = context.codingPath + [key]
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
            path = context.codingPath
        default: break
        }
        guard !path.isEmpty else { return "it is not the expected JSON" }
        return path.reduce("") { text, key in
            if let index = key.intValue { return text + "[\(index)]" }
            return text.isEmpty ? key.stringValue : text + "." + key.stringValue
        }
    }
}
