import HTTPMessages
import HTTPTypes

/// The parts of a request's result as text, without secrets. A body may be a secret, so only its size is shown.
enum ResponseText {
    /// Returns a first line, and an indented line for each field.
    static func lines(_ first: String, _ fields: HTTPFields) -> [String] {
        [first] + fields.map { "    " + ReadableText.line("\($0.name): \(FieldRedaction.value(of: $0))") }
    }

    /// Returns the lines about the request and the head of its response.
    static func head(_ request: TransferRequest?, _ head: ResponseHead?) -> [String] {
        self.request(request) + lines("[Response]: \(head?.description ?? "none")", head?.headerFields ?? [:])
    }

    static func request(_ request: TransferRequest?) -> [String] {
        lines("[Request]: \(ReadableText.line(request?.description ?? "none"))", request?.headerFields ?? [:])
    }

    /// Returns the lines about the times, and the result.
    static func end(_ metrics: TransferMetrics, _ result: String) -> [String] {
        [
            "[Timeline]: \(metrics.last?.timeline.description ?? "none")", "[Metrics]: \(metrics)",
            "[Result]: \(result)",
        ]
    }

    /// Returns the text of a result.
    ///
    /// - Parameter value: the text of the value.
    static func result<Value>(_ result: Result<Value, TransferError>, _ value: @autoclosure () -> String) -> String {
        switch result {
        case .success: "success: \(value())"
        case .failure(let error): "failure: \(ReadableText.line(error.message))"
        }
    }

    /// Returns the text of a value that was made of `size` bytes: the type of the value, unless it is the body itself.
    static func value<Value>(_ type: Value.Type, of size: String) -> String {
        let isBody = ["Data", "Optional<Data>"].contains("\(type)")
        return isBody ? size : "\(type), \(size)"
    }
}
