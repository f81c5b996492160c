import FoundationEssentials
import TaskModel
import Testing

@testable import ControlProtocol

/// docs/protocol.md against the description of the protocol for programs.
@Suite("The protocol's documentation")
struct ProtocolDocumentTests {
    private let text: String

    init() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        text = try String(contentsOfFile: root.path + "/docs/protocol.md", encoding: .utf8)
    }

    /// The text beneath the heading that names a method.
    private func section(_ method: MethodName) throws -> Substring {
        let headings = text.split(separator: "\n### ")
        return try #require(
            headings.first { heading in
                heading.prefix { $0 != "\n" }.split(separator: ", ").contains { $0 == method.rawValue }
            }, "\(method.rawValue) has no section")
    }

    @Test("every method has a section, which names each of its parameters, and there are no other methods")
    func sections() throws {
        let nouns = Set(MethodName.allCases.compactMap { $0.rawValue.split(separator: ".").first })
        for heading in text.split(separator: "\n### ").dropFirst() {
            for word in heading.prefix(while: { $0 != "\n" }).split(separator: ", ") {
                let parts = word.split(separator: ".")
                guard parts.count == 2, nouns.contains(parts[0]) else { continue }
                #expect(MethodName(rawValue: String(word)) != nil, "\(word)")
            }
        }
        // The parameters that a section describes by a common name.
        let common: [String: String] = ["ids": "selection", "filter": "selection"]
        for method in MethodName.allCases {
            let section = try section(method)
            for parameter in method.parameters.map(\.name) {
                let isNamed = section.contains("\"\(parameter)\"") || section.contains("`\(parameter)`")
                let isCommon = common[parameter].map { section.lowercased().contains($0) } ?? false
                let isSelecting = method == .eventsList && section.contains("events.subscribe")
                #expect(isNamed || isCommon || isSelecting, "\(method.rawValue): \(parameter)")
            }
        }
    }

    @Test("the tables name every field of a task, of a filter and of an event, every event, state and error number")
    func tables() throws {
        let fields =
            TaskField.ofJSON.map(\.name) + TaskFilter.CodingKeys.allCases.map(\.rawValue)
            + SharedSchema.eventFields.map(\.name) + TaskEvent.Kind.allCases.map(\.rawValue)
            + TaskField.changeable.map(\.name)
        for field in fields where field != "url" { #expect(text.contains("`\(field)`"), "\(field)") }
        for error in SharedError.allCases {
            #expect(text.contains("| −\(-error.number) |"), "\(error.number)")
        }
    }

    @Test("each request is one, and each reply satisfies the schema of its method, with no field that it lacks")
    func examples() throws {
        let check = SchemaCheck(document: OpenRPCDocument().value, knowsEveryField: true)
        let decoder = JSONDecoder()
        var requests: [RPCValue] = []
        var found = 0
        for line in text.split(separator: "\n") {
            if line.hasPrefix("$ ") {
                requests = try line.split(separator: "'").filter { $0.hasPrefix("{\"jsonrpc\"") }.map {
                    let data = Data($0.utf8)
                    #expect(throws: Never.self, "\($0)") {
                        try decoder.decode(IncomingRequest.self, from: data).command.get()
                    }
                    return try decoder.decode(RPCValue.self, from: data)
                }
                // The answers are shown as another program prints them.
                if line.contains("| jq") { requests = [] }
            } else if line.hasPrefix("{"), !requests.isEmpty {
                let reply = try decoder.decode(RPCValue.self, from: Data(line.utf8))
                guard let result = reply["result"] else { continue }
                let request = try #require(requests.first { $0["id"] == reply["id"] })
                let method = try #require(MethodName(rawValue: request["method"]?.text ?? ""))
                #expect(check.faults(of: result, in: method.description.result.schema.value) == [], "\(line)")
                found += 1
            }
        }
        #expect(found >= 20)
    }
}
