/// An encoding of the parameters as one JSON object in the body (RFC 8259), in UTF-8.
public struct JSONEncoding: ParameterEncoding {
    /// The body's `Content-Type`, unless the request sets its own.
    public static let contentType = "application/json"

    /// The encoding with sorted names on one line.
    public static let `default` = JSONEncoding()
    /// The encoding with sorted names and each value on its own line.
    public static let prettyPrinted = JSONEncoding(isPretty: true)

    /// Whether names are sorted, so that equal parameters give equal bytes. Otherwise their order differs between
    /// processes.
    public var sortsKeys: Bool
    /// Whether each value is on its own line, indented by two spaces for each level.
    public var isPretty: Bool

    /// Creates an encoding; by default names are sorted (`String` order), and the object is on one line.
    public init(sortsKeys: Bool = true, isPretty: Bool = false) {
        self.sortsKeys = sortsKeys
        self.isPretty = isPretty
    }

    public func encode(
        _ request: TransferRequest, with parameters: Parameters
    ) throws(TransferError) -> EncodedRequest {
        var body: [UInt8] = []
        try append(.dictionary(parameters), named: "", depth: 0, to: &body)
        return EncodedRequest(request, body: body, contentType: Self.contentType)
    }

    private func append(
        _ value: ParameterValue, named name: String, depth: Int, to body: inout [UInt8]
    ) throws(TransferError) {
        switch value {
        case .string(let value): JSONText.append(value, to: &body)
        case .int(let value): body += String(value).utf8
        case .double(let value): body += try ParameterValue.digits(of: value, named: name).utf8
        case .bool(let value): body += (value ? "true" : "false").utf8
        case .null: body += "null".utf8
        case .array(let elements):
            guard depth <= ParameterValue.maximumDepth else { throw ParameterValue.tooDeep(named: name) }
            body.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                beginMember(isFirst: index == 0, depth: depth, in: &body)
                try append(element, named: name, depth: depth + 1, to: &body)
            }
            end(isEmpty: elements.isEmpty, depth: depth, with: "]", in: &body)
        case .dictionary(let members):
            guard depth <= ParameterValue.maximumDepth else { throw ParameterValue.tooDeep(named: name) }
            body.append(UInt8(ascii: "{"))
            let ordered = sortsKeys ? members.sorted { $0.key < $1.key } : Array(members)
            for (index, member) in ordered.enumerated() {
                beginMember(isFirst: index == 0, depth: depth, in: &body)
                JSONText.append(member.key, to: &body)
                body += (isPretty ? ": " : ":").utf8
                try append(member.value, named: name.isEmpty ? member.key : name, depth: depth + 1, to: &body)
            }
            end(isEmpty: members.isEmpty, depth: depth, with: "}", in: &body)
        }
    }

    private func beginMember(isFirst: Bool, depth: Int, in body: inout [UInt8]) {
        if !isFirst { body.append(UInt8(ascii: ",")) }
        if isPretty { breakLine(depth: depth + 1, in: &body) }
    }

    private func end(isEmpty: Bool, depth: Int, with mark: String, in body: inout [UInt8]) {
        if isPretty, !isEmpty { breakLine(depth: depth, in: &body) }
        body += mark.utf8
    }

    private func breakLine(depth: Int, in body: inout [UInt8]) {
        body.append(UInt8(ascii: "\n"))
        body += repeatElement(0x20, count: 2 * depth)
    }
}
