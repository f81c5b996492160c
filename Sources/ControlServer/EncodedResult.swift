import ControlProtocol
package import FoundationEssentials

/// A command's result with its JSON.
package struct EncodedResult: Encodable, Sendable {
    package let value: any Encodable & Sendable
    /// The value as ``encoder`` encodes it.
    package let json: Data

    package init(_ value: some Encodable & Sendable) throws {
        self.value = value
        json = try Self.encoder.encode(value)
    }

    package func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }

    /// Returns the successful response to a request, as ``encoder`` would encode an ``RPCResponse``.
    func response(to id: RequestID) throws -> Data {
        var response = Data(#"{"id":"#.utf8)
        response.append(try Self.encoder.encode(id))
        response.append(contentsOf: #","jsonrpc":"2.0","result":"#.utf8)
        response.append(json)
        response.append(UInt8(ascii: "}"))
        return response
    }

    /// An encoder for responses.
    static var encoder: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }
}
