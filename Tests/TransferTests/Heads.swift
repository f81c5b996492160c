@testable import Transfer

/// The head of an answer, field by field.
func head(_ status: Int, _ fields: [String] = []) -> ResponseHead {
    ResponseHead(status: status, version: "1.1", lines: Array(fields.map { $0 + "\r\n" }.joined().utf8))
}
