import ControlProtocol
import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// The examples of docs/protocol.md against a running daemon.
@Suite("Examples of the protocol's documentation", .timeLimit(.minutes(2)))
struct ProtocolExampleTests {
    /// A command of the document: the requests of one connection, and the lines that come back.
    struct Example: CustomStringConvertible {
        var requests: [String]
        var replies: [String]
        /// Whether the lines that come back are shown through another program.
        var isFiltered: Bool

        var description: String { requests.joined(separator: " ") }
    }

    private static var examples: [Example] {
        get throws {
            let path =
                URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent().path + "/docs/protocol.md"
            var examples: [Example] = []
            var isInside = false
            for line in try text(of: path).split(separator: "\n", omittingEmptySubsequences: false) {
                if line.hasPrefix("$ ") {
                    let requests = line.split(separator: "'").filter { $0.hasPrefix("{\"jsonrpc\"") }
                    isInside = !requests.isEmpty
                    guard isInside else { continue }
                    examples.append(
                        Example(
                            requests: requests.map(String.init), replies: [], isFiltered: line.contains("| jq")))
                } else if line.hasPrefix("```") {
                    isInside = false
                } else if isInside {
                    examples[examples.count - 1].replies.append(String(line))
                }
            }
            return examples
        }
    }

    private func method(_ request: String) throws -> String? {
        try JSONDecoder().decode(RPCValue.self, from: Data(request.utf8)).member("method")?.asText
    }

    @Test("every method has an example")
    func complete() throws {
        let shown = Set(try Self.examples.flatMap(\.requests).compactMap(method))
        #expect(shown == Set(MethodName.allCases.map(\.rawValue)))
    }

    @Test("each request is answered as the document shows, with the same fields")
    func answers() async throws {
        let resource = Resource(size: mebibyte)
        let server = try ScriptedServer([
            "/a.iso": [.serve(resource)], "/b.iso": [.serve(resource)], "/c.iso": [.serve(resource)],
        ])
        let base = server.url("")
        let daemon = try await DaemonProcess.started()
        for example in try Self.examples.sorted(by: { !$0.endsDaemon && $1.endsDaemon }) {
            let connection = try StreamSocket(path: daemon.socket)
            connection.setReadTimeout(20)
            for request in example.requests {
                connection.send(request.replacing("https://example.org", with: base).utf8 + [0x0A])
            }
            // Where a program filters the answers, the document does not show them as they come.
            for shown in example.isFiltered ? example.requests : example.replies {
                let line = try #require(try connection.readLine(), "\(example)")
                let reply = try JSONDecoder().decode(RPCValue.self, from: Data(line.utf8))
                if example.isFiltered {
                    #expect(reply.member("result") != nil, "\(line)")
                    continue
                }
                let expected = try JSONDecoder().decode(RPCValue.self, from: Data(shown.utf8))
                #expect(expected.differences(from: reply) == [], "\(example)\n\(line)")
            }
            if example.endsDaemon { break }
            // The next example shows tasks that have ended.
            try await eventually(that: "no task runs") {
                try daemon.tasks().allSatisfy { $0.state.isEnded || $0.state == .paused }
            }
        }
    }
}

extension ProtocolExampleTests.Example {
    fileprivate var endsDaemon: Bool { requests.contains { $0.contains("\"daemon.shutdown\"") } }
}

extension RPCValue {
    fileprivate func member(_ key: String) -> RPCValue? {
        if case .object(let object) = self { object[key] } else { nil }
    }

    fileprivate var asText: String? { if case .string(let text) = self { text } else { nil } }

    /// Returns the places at which another value has other fields, or values of another type. Of two lists the first
    /// elements are compared. `null` may stand for any value.
    fileprivate func differences(from other: RPCValue, at place: String = "") -> [String] {
        switch (self, other) {
        case (.object(let one), .object(let two)):
            let names = Set(one.keys).symmetricDifference(two.keys).sorted().map { "\(place).\($0)" }
            return names
                + one.flatMap { key, value in two[key].map { value.differences(from: $0, at: "\(place).\(key)") } ?? []
                }
        case (.array(let one), .array(let two)):
            guard let first = one.first, let second = two.first else {
                return one.isEmpty == two.isEmpty ? [] : ["\(place): \(one.count) and \(two.count) elements"]
            }
            return first.differences(from: second, at: place + "[0]")
        case (.null, _), (_, .null), (.bool, .bool), (.integer, .integer), (.string, .string): return []
        default: return ["\(place): \(self) and \(other)"]
        }
    }
}
