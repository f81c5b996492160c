import FoundationEssentials
import HTTPTypes
import Testing

@testable import Transfer

@Suite("Parameters as JSON (RFC 8259)")
struct JSONEncodingTests {
    private func text(_ parameters: Parameters, _ encoding: JSONEncoding = JSONEncoding()) throws -> String {
        let encoded = try encoding.encode(TransferRequest(url: "http://h/", method: .post), with: parameters)
        return String(decoding: try #require(encoded.body), as: UTF8.self)
    }

    @Test(
        "every kind of value has its form, sorted by name",
        arguments: [
            ([:], "{}"),
            (["b": 2, "a": -1], #"{"a":-1,"b":2}"#),
            (["d": 1.5, "e": 1e20, "f": -0.0, "g": 3.0], #"{"d":1.5,"e":1e+20,"f":-0.0,"g":3.0}"#),
            (["t": true, "f": false, "n": nil], #"{"f":false,"n":null,"t":true}"#),
            (["a": [1, "x", [], [:], ["k": [nil]]]], #"{"a":[1,"x",[],{},{"k":[null]}]}"#),
            (["i": .int(.min)], #"{"i":-9223372036854775808}"#),
        ] as [(Parameters, String)])
    func values(parameters: Parameters, result: String) throws {
        #expect(try text(parameters) == result)
    }

    @Test("strings hold nothing that would end them or that JSON forbids")
    func strings() throws {
        #expect(
            try text(["\"k\\": "a\"b\\c\r\n\t\u{0}\u{1F}\u{7F}é😀/"])
                == #"{"\"k\\":"a\"b\\c\r\n\t\u0000\u001f"# + "\u{7F}é😀/\"}")
    }

    @Test("it can be laid out for a person")
    func pretty() throws {
        #expect(
            try text(["b": [], "a": ["x": [1, 2]]], JSONEncoding(isPretty: true)) == """
                {
                  "a": {
                    "x": [
                      1,
                      2
                    ]
                  },
                  "b": []
                }
                """)
    }

    @Test("another reader finds the same in it", arguments: [true, false], [true, false])
    func readBack(sorts: Bool, isPretty: Bool) throws {
        struct Shape: Decodable, Equatable {
            var text: String
            var number: Double
            var list: [Int]
            var nested: [String: Bool]
        }
        let encoded = try text(
            ["text": "ü\u{1}\"", "number": 0.1, "list": [3, 1, 2], "nested": ["a": true, "b": false]],
            JSONEncoding(sortsKeys: sorts, isPretty: isPretty))
        #expect(
            try JSONDecoder().decode(Shape.self, from: Data(encoded.utf8))
                == Shape(text: "ü\u{1}\"", number: 0.1, list: [3, 1, 2], nested: ["a": true, "b": false]))
    }

    @Test("the body is there for every method and has its type, unless the request names its own")
    func contentType() throws {
        var request = TransferRequest(url: "http://h/?x#f")
        let encoded = try JSONEncoding().encode(request, with: [:])
        #expect(encoded.body == Array("{}".utf8))
        #expect(encoded.request.url == "http://h/?x#f")
        #expect(encoded.request.headerFields[.contentType] == "application/json")
        request.headerFields[.contentType] = "application/merge-patch+json"
        #expect(
            try JSONEncoding().encode(request, with: [:]).request.headerFields[.contentType]
                == "application/merge-patch+json")
    }

    @Test("a number that is not finite is an error", arguments: [Double.nan, .infinity, -.infinity])
    func notFinite(value: Double) {
        let error = #expect(throws: TransferError.self) { try text(["a": ["b": [.double(value)]]]) }
        #expect(error?.code == .invalidRequest)
    }

    @Test("there are so many levels at most")
    func depth() throws {
        func nested(_ levels: Int) -> ParameterValue {
            (0..<levels).reduce(1) { value, level in level.isMultiple(of: 2) ? [value] : ["k": value] }
        }
        #expect(try !text(["a": nested(ParameterValue.maximumDepth)]).isEmpty)
        let error = #expect(throws: TransferError.self) { try text(["a": nested(ParameterValue.maximumDepth + 1)]) }
        #expect(error?.code == .invalidRequest)
    }
}
