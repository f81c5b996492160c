import FoundationEssentials
import TestSupport
import Testing

@testable import Transfer

@Suite("Bodies as values, and empty ones")
struct DecodableSerializerTests {
    private struct Item: Decodable, Equatable, Sendable {
        var itemName: String
    }

    private struct Nothing: Decodable, Equatable, Sendable, EmptyResponse {
        static var emptyValue: Nothing { Nothing() }
    }

    /// A decoder of another format: the body is the name.
    private struct NameDecoder: DataDecoder {
        private struct Name: Decoder, SingleValueDecodingContainer {
            let text: String
            var codingPath: [any CodingKey] { [] }
            var userInfo: [CodingUserInfoKey: Any] { [:] }
            private var wrong: DecodingError {
                DecodingError.dataCorrupted(DecodingError.Context(codingPath: [], debugDescription: "only text"))
            }
            func container<Key>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> { throw wrong }
            func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw wrong }
            func singleValueContainer() -> any SingleValueDecodingContainer { self }
            func decodeNil() -> Bool { false }
            func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
                guard let value = text as? Value else { throw wrong }
                return value
            }
        }

        func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
            try type.init(from: Name(text: String(decoding: data, as: UTF8.self)))
        }
    }

    private func head(_ status: Int) -> ResponseHead { ResponseHead(status: status, version: "", lines: []) }

    @Test("the type of the value may be the first argument")
    func typeAsArgument() throws {
        #expect(try DecodableSerializer([Int].self).serialize(Data("[1]".utf8), of: nil) == [1])
        let named = DecodableSerializer(String.self, decoder: NameDecoder())
        #expect(try named.serialize(Data("a".utf8), of: nil) == "a")
    }

    @Test("a decoder of the caller decodes the body", .timeLimit(.minutes(1)))
    func decoders() async throws {
        let server = try ScriptedServer(["/i": [.status(200, body: #"{"item_name": "a"}"#)]])
        let manager = try SessionManager(configuration: .test())
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        #expect(
            try await manager.request(server.url("/i")).decoded(as: Item.self, decoder: decoder)
                == Item(itemName: "a"))
        let failed = await manager.request(server.url("/i")).serialized(using: DecodableSerializer<Item>())
        #expect(failed.error?.code == .serializationFailed)
        let heard = Notes<String>()
        let request = manager.request(server.url("/i"))
            .responseDecodable(of: Item.self, queue: .inline, decoder: decoder) { heard.add($0.value?.itemName ?? "") }
            .responseDecodable(of: String.self, queue: .inline, decoder: NameDecoder()) { heard.add($0.value ?? "") }
        await request.completion()
        #expect(heard.all == ["a", #"{"item_name": "a"}"#])
    }

    @Test("an empty body is empty data and an empty text with any status", arguments: [200, 204, 205, 404])
    func emptyDataAndText(status: Int) throws {
        #expect(try DataSerializer().serialize(Data(), of: head(status)).isEmpty)
        #expect(try StringSerializer().serialize(Data(), of: head(status)).isEmpty)
        #expect(try StringSerializer().serialize(Data(), of: nil).isEmpty)
    }

    @Test("an empty body is JSON only with status 204 and 205", arguments: [200, 204, 205, 404])
    func emptyJSON(status: Int) throws {
        let isEmptySuccess = status == 204 || status == 205
        #expect((try? JSONSerializer().serialize(Data(), of: head(status))) == (isEmptySuccess ? .null : nil))
        let nothing = try? DecodableSerializer<Nothing>().serialize(Data(), of: head(status))
        #expect(nothing == (isEmptySuccess ? Nothing() : nil))
        let optional = DecodableSerializer<Item?>().result(Data(), of: head(status))
        #expect(optional == (isEmptySuccess ? .success(nil) : .failure(.emptyBody)))
    }

    @Test("a type without an empty value fails for an empty body, and the error says why")
    func noEmptyValue() throws {
        let error = #expect(throws: TransferError.self) {
            try DecodableSerializer<Item>().serialize(Data(), of: head(204))
        }
        #expect(error?.code == .serializationFailed)
        #expect(error?.message == "the body is empty (status 204), and Item has no empty value")
        let other = #expect(throws: TransferError.self) {
            try DecodableSerializer<Nothing>().serialize(Data(), of: head(200))
        }
        #expect(other?.message == "the body is empty")
    }
}
