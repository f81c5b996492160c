import FoundationEssentials
import TaskModel

/// The JSON encoding used in the database. Keys are sorted, so that equal values have equal texts.
enum StoredJSON {
    private static let encoder: JSONEncoder = {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }()
    private static let decoder = JSONDecoder()

    static func encode(_ value: some Encodable) throws(StoreError) -> String {
        do {
            return String(decoding: try encoder.encode(value), as: UTF8.self)
        } catch {
            throw .other("a \(type(of: value)) could not be encoded as JSON")
        }
    }

    static func decode<Value: Decodable>(_ type: Value.Type, from text: String) throws(StoreError) -> Value {
        do {
            return try decoder.decode(type, from: Data(text.utf8))
        } catch {
            throw .corrupt("a stored JSON text is not a valid \(type)")
        }
    }

    /// Encodes secrets.
    ///
    /// - Returns: `nil` if there are none.
    static func encode(secrets: TaskSecrets) throws(StoreError) -> String? {
        secrets.isEmpty ? nil : try encode(secrets)
    }
}

extension String {
    /// Returns whether the text contains the bytes of another. `contains(_:)` takes many times as long.
    func hasBytes(of other: String) -> Bool {
        var (text, other) = (self, other)
        return text.withUTF8 { text in
            other.withUTF8 { other in
                guard let first = other.first else { return true }
                var rest = text[...]
                while let start = rest.firstIndex(of: first) {
                    rest = rest[start...]
                    if rest.starts(with: other) { return true }
                    rest = rest.dropFirst()
                }
                return false
            }
        }
    }
}
