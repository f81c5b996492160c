import HTTPTypes

/// An encoding as `name=value` pairs in the format of HTML forms, joined by `&` and sorted by name.
///
/// Everything but letters, digits and `-._~` is percent-encoded, including brackets. A space becomes `%20`. In a query,
/// `/` and `?` are not encoded (RFC 3986, section 3.4). A member of a dictionary is named `name[key]`. A null becomes
/// an empty value. An empty array or dictionary produces no pair.
public struct URLEncoding: ParameterEncoding {
    /// The place of the pairs in the request.
    public enum Destination: Sendable {
        /// The query for GET, HEAD and DELETE, the body for every other method.
        case methodDependent
        /// The URL's query, appended to an existing one.
        case queryString
        /// The body, whatever the method.
        case httpBody
    }

    /// The naming of array elements.
    public enum ArrayEncoding: Sendable {
        /// `a[]=1&a[]=2`
        case brackets
        /// `a=1&a=2`
        case noBrackets
        /// `a[0]=1&a[1]=2`
        case indexInBrackets
    }

    /// The representation of Booleans.
    public enum BoolEncoding: Sendable {
        /// `1` and `0`.
        case numeric
        /// `true` and `false`.
        case literal
    }

    /// The body's `Content-Type`, unless the request sets its own.
    public static let contentType = "application/x-www-form-urlencoded; charset=utf-8"

    /// The encoding whose place the method decides; the same as `URLEncoding()`.
    public static let `default` = URLEncoding()
    /// The encoding into the URL's query.
    public static let queryString = URLEncoding(destination: .queryString)
    /// The encoding into the body.
    public static let httpBody = URLEncoding(destination: .httpBody)

    /// The place of the pairs in the request.
    public var destination: Destination
    /// The naming of array elements.
    public var arrayEncoding: ArrayEncoding
    /// The representation of Booleans.
    public var boolEncoding: BoolEncoding

    /// Creates an encoding. By default the method decides the place, arrays use brackets and Booleans are numbers.
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

    /// Inserts the pairs after an existing query and before the fragment (RFC 3986, section 3).
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
