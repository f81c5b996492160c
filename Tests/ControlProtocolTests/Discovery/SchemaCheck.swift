import ControlProtocol

/// A check of values against the schemas of a document, as far as the document uses JSON Schema.
struct SchemaCheck {
    let document: RPCValue
    /// Whether a field that the schema does not name is a fault, although later versions may add fields.
    var knowsEveryField = false

    /// Returns what is wrong with a value.
    func faults(of value: RPCValue, in schema: RPCValue, at place: String = "") -> [String] {
        if let path = schema["$ref"]?.text {
            guard let target = target(of: path) else { return ["\(place): no \(path)"] }
            return faults(of: value, in: target, at: place)
        }
        if let parts = schema["allOf"]?.array { return parts.flatMap { faults(of: value, in: $0, at: place) } }
        if let choices = schema["anyOf"]?.array {
            let all = choices.map { faults(of: value, in: $0, at: place) }
            return all.contains([]) ? [] : all.flatMap(\.self)
        }
        switch (schema["type"]?.text, value) {
        case ("null", .null), ("boolean", .bool): return []
        case ("string", .string):
            guard let words = schema["enum"]?.array, !words.contains(value) else { return [] }
        case ("integer", .integer(let number)):
            if let least = schema["minimum"]?.number, number < least { break }
            if let most = schema["maximum"]?.number, number > most { break }
            return []
        case ("array", .array(let elements)):
            if let most = schema["maxItems"]?.number, elements.count > most { break }
            return elements.enumerated().flatMap { index, element in
                faults(of: element, in: schema["items"] ?? nil, at: "\(place)[\(index)]")
            }
        case ("object", .object(let fields)): return faults(of: fields, in: schema, at: place)
        default: break
        }
        return ["\(place): \(value) is not \(schema)"]
    }

    private func faults(of fields: [String: RPCValue], in schema: RPCValue, at place: String) -> [String] {
        let properties = schema["properties"]?.object ?? [:]
        let isOpen = schema["additionalProperties"] != false && !(knowsEveryField && !properties.isEmpty)
        let missing = (schema["required"]?.array ?? []).compactMap(\.text).filter { fields[$0] == nil }
        return missing.map { "\(place).\($0) is missing" }
            + fields.flatMap { name, field in
                guard let property = properties[name] else { return isOpen ? [] : ["\(place).\(name) is unknown"] }
                return faults(of: field, in: property, at: "\(place).\(name)")
            }
    }

    /// Returns the part of the document to which a reference leads.
    func target(of path: String) -> RPCValue? {
        path.split(separator: "/").dropFirst().reduce(document as RPCValue?) { $0?[String($1)] }
    }
}

extension RPCValue {
    subscript(key: String) -> RPCValue? { object?[key] }

    var object: [String: RPCValue]? { if case .object(let value) = self { value } else { nil } }
    var array: [RPCValue]? { if case .array(let value) = self { value } else { nil } }
    var text: String? { if case .string(let value) = self { value } else { nil } }
    var number: Int64? { if case .integer(let value) = self { value } else { nil } }
}
