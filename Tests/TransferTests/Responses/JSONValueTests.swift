import FoundationEssentials
import Testing

@testable import Transfer

@Suite("JSON of any shape")
struct JSONValueTests {
    private func value(_ text: String) throws -> JSONValue {
        try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
    }

    @Test("integers of 64 bits come through exactly")
    func exactIntegers() throws {
        #expect(try value("9223372036854775807").number?.int64 == .max)
        #expect(try value("-9223372036854775808").number?.int64 == .min)
        #expect(try value("18446744073709551615").number?.uint64 == .max)
        #expect(try value("9007199254740993").int == 9_007_199_254_740_993)
        #expect(try value("9223372036854775807").description == "9223372036854775807")
        #expect(try value("[18446744073709551615]").description == "[18446744073709551615]")
        let values = [JSONValue.number(JSONNumber(Int64.max)), .number(JSONNumber(UInt64.max)), 9_007_199_254_740_993]
        let data = try JSONEncoder().encode(values)
        #expect(
            String(decoding: data, as: UTF8.self) == "[9223372036854775807,18446744073709551615,9007199254740993]")
        #expect(try JSONDecoder().decode([JSONValue].self, from: data) == values)
    }

    @Test("an integer that is too large for 64 bits is a double")
    func largeNumbers() throws {
        let value = try value("18446744073709551616")
        #expect(value.int == nil && value.number?.uint64 == nil && value.double == 18_446_744_073_709_551_616)
        #expect(try self.value("9223372036854775808").int == nil)
        #expect(try self.value("-9223372036854775809").double == -9_223_372_036_854_775_808)
        #expect(try self.value("1e300").double == 1e300)
    }

    @Test("a number is an integer by its value, not by its spelling")
    func spelling() throws {
        #expect(try value("1.0") == 1 && value("1.0").int == 1 && value("1") == 1.0 && value("1e2").int == 100)
        #expect(try value("1.5").int == nil && value("1.5").double == 1.5 && value("1").double == 1)
        #expect(try value("-0.0") == 0 && value("-1").number?.uint64 == nil)
        #expect(JSONNumber(1.0).hashValue == JSONNumber(1).hashValue)
        #expect(JSONNumber(1.0).description == "1" && JSONNumber(0.1).description == "0.1")
    }

    @Test("a Boolean is no number, and a number is no Boolean")
    func booleans() throws {
        #expect(try value("true") == true && value("true").int == nil && value("true").double == nil)
        #expect(try value("1").bool == nil && value("0") != false && value("false").bool == false)
    }

    @Test("accessors take each type, and nothing else")
    func accessors() throws {
        let json = try value(#"{"a": [1, "two", null, {"b": true}], "string": "x", "n": null}"#)
        #expect(json["a"]?[0]?.int == 1 && json["a"]?[1]?.string == "two" && json["a"]?[2]?.isNull == true)
        #expect(json["a"]?[3]?["b"]?.bool == true && json["a"]?.array?.count == 4 && json.object?.count == 3)
        #expect(json["string"]?.string == "x" && json["string"]?.int == nil && json["string"]?.array == nil)
        #expect(json["b"] == nil && json["a"]?[4] == nil && json["a"]?[-1] == nil && json[0] == nil)
        #expect(json["n"] == .null && json["n"] != nil && json.string == nil && json["a"]?.object == nil)
    }

    @Test("values are written as literals, and described and encoded as JSON")
    func literals() throws {
        let name = "Ada"
        let json: JSONValue = [
            "name": "\(name) \"L\"", "list": [1, 2.5, true, nil, "é\n"], "none": [:], "empty": [],
        ]
        let text = #"{"empty":[],"list":[1,2.5,true,null,"é\n"],"name":"Ada \"L\"","none":{}}"#
        #expect(json.description == text)
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        #expect(String(decoding: try encoder.encode(json), as: UTF8.self) == text)
        #expect(try value(text) == json)
    }

    @Test("an error within an array is that error")
    func errors() throws {
        let error = #expect(throws: DecodingError.self) { try value(#"{"a": [1, 1e400]}"#) }
        guard case .dataCorrupted = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(throws: DecodingError.self) { try value("[1") }
    }

    @Test("names are not converted, also if the decoder converts those of types")
    func names() throws {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let json = try decoder.decode(JSONValue.self, from: Data(#"{"a_b": {"c_d": 1}}"#.utf8))
        #expect(json["a_b"]?["c_d"] == 1)
    }
}
