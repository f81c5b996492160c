import HTTPTypes

/// `name=value` pairs as HTML forms send them, joined by `&` and sorted by name.
///
/// Everything but letters, digits and `-._~` is percent-encoded, brackets too; a space becomes `%20`, and in a query
/// `/` and `?` stand as they are (RFC 3986, section 3.4). What lies in a dictionary is named `name[key]`. A null is
/// an empty value; an empty array or dictionary leaves nothing.
public struct URLEncoding: ParameterEncoding {
    /// Where the pairs go.
    public enum Destination: Sendable {
        /// Into the query for GET, HEAD and DELETE, into the body for every other method.
        case methodDependent
        /// Into the URL's query, after what it has.
        case queryString
        /// Into the body, whatever the method.
        case httpBody
    }

    /// How the elements of an array are named.
    public enum ArrayEncoding: Sendable {
        /// `a[]=1&a[]=2`
        case brackets
        /// `a=1&a=2`
        case noBrackets
        /// `a[0]=1&a[1]=2`
        case indexInBrackets
    }

    /// How truth is written.
    public enum BoolEncoding: Sendable {
        /// `1` and `0`.
        case numeric
        /// `true` and `false`.
        case literal
    }

    /// The type of a body, unless the request names another.
    public static let contentType = "application/x-www-form-urlencoded; charset=utf-8"

    /// Where the pairs go.
    public var destination: Destination
    /// How the elements of an array are named.
    public var arrayEncoding: ArrayEncoding
    /// How truth is written.
    public var boolEncoding: BoolEncoding

    /// By method, with brackets and numbers for truth, unless said otherwise.
    public init(
        destination: Destination = .methodDependent, arrayEncoding: ArrayEncoding = .brackets,
        boolEncoding: BoolEncoding = .numeric
    ) {
        self.destination = destination
        self.arrayEncoding = arrayEncoding
        self.boolEncoding = boolEncoding
    }

    public func encode(
        _ request: TransferRequest, with parameters: Parameters
    ) throws(TransferError) -> EncodedRequest {
        let isQuery: Bool =
            switch destination {
            case .queryString: true
            case .httpBody: false
            case .methodDependent: [.get, .head, .delete].contains(request.method)
            }
        let text = try pairs(parameters, escape: isQuery ? .query : .unreserved)
        guard isQuery else { return EncodedRequest(request, body: Array(text.utf8), contentType: Self.contentType) }
        var request = request
        if !text.isEmpty { request.url = Self.append(text, toQueryOf: request.url) }
        return EncodedRequest(request: request)
    }

    private func pairs(_ parameters: Parameters, escape: PercentEscape) throws(TransferError) -> String {
        var pairs: [String] = []
        for (name, value) in parameters.sorted(by: { $0.key < $1.key }) {
            try append(value, named: name, depth: 0, to: &pairs, escape: escape)
        }
        return pairs.joined(separator: "&")
    }

    private func append(
        _ value: ParameterValue, named name: String, depth: Int, to pairs: inout [String], escape: PercentEscape
    ) throws(TransferError) {
        let text: String
        switch value {
        case .string(let value): text = value
        case .int(let value): text = String(value)
        case .double(let value): text = try ParameterValue.digits(of: value, named: name)
        case .bool(let value) where boolEncoding == .numeric: text = value ? "1" : "0"
        case .bool(let value): text = value ? "true" : "false"
        case .null: text = ""
        case .array(let elements):
            guard depth < ParameterValue.maximumDepth else { throw ParameterValue.tooDeep(named: name) }
            for (index, element) in elements.enumerated() {
                let name =
                    switch arrayEncoding {
                    case .brackets: name + "[]"
                    case .noBrackets: name
                    case .indexInBrackets: "\(name)[\(index)]"
                    }
                try append(element, named: name, depth: depth + 1, to: &pairs, escape: escape)
            }
            return
        case .dictionary(let members):
            guard depth < ParameterValue.maximumDepth else { throw ParameterValue.tooDeep(named: name) }
            for (key, member) in members.sorted(by: { $0.key < $1.key }) {
                try append(member, named: "\(name)[\(key)]", depth: depth + 1, to: &pairs, escape: escape)
            }
            return
        }
        pairs.append(escape.escape(name) + "=" + escape.escape(text))
    }

    /// Behind the query that there is, before the fragment (RFC 3986, section 3).
    private static func append(_ pairs: String, toQueryOf url: String) -> String {
        let bytes = Array(url.utf8)
        let end = bytes.firstIndex(of: UInt8(ascii: "#")) ?? bytes.endIndex
        var result = Array(bytes[..<end])
        if !result.contains(UInt8(ascii: "?")) {
            result.append(UInt8(ascii: "?"))
        } else if let last = result.last, last != UInt8(ascii: "?"), last != UInt8(ascii: "&") {
            result.append(UInt8(ascii: "&"))
        }
        return String(decoding: result + pairs.utf8 + bytes[end...], as: UTF8.self)
    }
}
