public import HTTPTypes

/// The header fields of a request as text, in order.
///
/// They are written as a dictionary of strings, or as a list of fields:
///
///     manager.request(url, headers: ["X-Trace": "7"])
///     manager.request(url, headers: [.accept("application/json"), .authorization(bearer: token)])
///
/// A name or value that HTTP does not permit, such as one with a line end, fails the request with
/// ``TransferError/Code/invalidRequest``. Upper and lower case of names are equivalent. In a literal, the last of
/// several fields of one name is used; ``add(_:)`` makes several fields of one name.
public struct HTTPHeaders: Sendable, Hashable {
    private var fields: [HTTPHeader] = []

    /// Creates an empty list.
    public init() {}

    /// Creates a list of the fields of a dictionary, in the order of their names.
    public init(_ dictionary: [String: String]) {
        for (name, value) in dictionary.sorted(by: { $0.key < $1.key }) { self[name] = value }
    }

    /// Creates a list of fields. The last of several fields of one name is used.
    public init(_ fields: some Sequence<HTTPHeader>) {
        for field in fields { set(field) }
    }

    /// Creates a list of all fields, several of one name too.
    public init(_ fields: HTTPFields) {
        self.fields = fields.map { HTTPHeader(name: $0.name.rawName, value: $0.value) }
    }

    /// Adds a field, also if there is one of that name.
    public mutating func add(_ field: HTTPHeader) { fields.append(field) }

    /// Adds a field, also if there is one of that name.
    public mutating func add(name: String, value: String) { add(HTTPHeader(name: name, value: value)) }

    /// Sets a field in place of all fields of its name.
    public mutating func set(_ field: HTTPHeader) {
        guard let index = fields.firstIndex(where: { Self.matches($0.name, field.name) }) else {
            return fields.append(field)
        }
        fields[index] = field
        let others = fields[(index + 1)...].filter { !Self.matches($0.name, field.name) }
        fields.replaceSubrange((index + 1)..., with: others)
    }

    /// Removes all fields of a name.
    public mutating func remove(_ name: String) { fields.removeAll { Self.matches($0.name, name) } }

    /// The value of the first field of a name; `nil` if there is none. A new value replaces all fields of the name.
    public subscript(name: String) -> String? {
        get { fields.first { Self.matches($0.name, name) }?.value }
        set {
            guard let newValue else { return remove(name) }
            set(HTTPHeader(name: name, value: newValue))
        }
    }

    private static func matches(_ left: String, _ right: String) -> Bool { left.lowercased() == right.lowercased() }
}

extension HTTPHeaders: RandomAccessCollection {
    public var startIndex: Int { 0 }
    public var endIndex: Int { fields.count }

    public subscript(position: Int) -> HTTPHeader { fields[position] }
}

extension HTTPHeaders: ExpressibleByDictionaryLiteral {
    public init(dictionaryLiteral elements: (String, String)...) {
        self.init(elements.map { HTTPHeader(name: $0, value: $1) })
    }
}

extension HTTPHeaders: ExpressibleByArrayLiteral {
    public init(arrayLiteral elements: HTTPHeader...) { self.init(elements) }
}

extension HTTPHeaders: CustomStringConvertible, CustomReflectable {
    /// The fields, whose descriptions omit secrets.
    public var customMirror: Mirror { Mirror(self, unlabeledChildren: Array(self), displayStyle: .collection) }

    /// A line for each field; the values of fields that may be secret are omitted.
    public var description: String { map(\.description).joined(separator: "\n") }
}

extension HTTPFields {
    /// Creates the checked form of header fields.
    ///
    /// - Throws: ``TransferError/Code/invalidRequest`` for a name or value that HTTP does not permit. The message names
    ///   the field, and omits its value.
    public init(_ headers: HTTPHeaders) throws(TransferError) {
        var fields = HTTPFields()
        for header in headers { fields.append(try header.field()) }
        self = fields
    }
}

extension TransferRequest {
    /// Creates a request.
    ///
    /// - Throws: ``TransferError/Code/invalidRequest`` for a name or value of a header field that HTTP does not permit.
    public init(
        url: String, method: HTTPRequest.Method = .get, headers: HTTPHeaders
    ) throws(TransferError) {
        self.init(url: url, method: method, headerFields: try HTTPFields(headers))
    }
}
