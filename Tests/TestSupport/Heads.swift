public import HTTPMessages

/// Returns a response head with these fields.
public func head(_ status: Int, _ fields: [String] = []) -> ResponseHead {
    ResponseHead(status: status, version: "1.1", lines: Array(fields.map { $0 + "\r\n" }.joined().utf8))
}
