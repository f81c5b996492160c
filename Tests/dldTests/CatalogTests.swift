import FoundationEssentials
import TaskQueue
import Testing

@testable import dld

/// The catalogue with the explanations of `journalctl -x`.
@Suite("The message catalogue of the journal")
struct CatalogTests {
    private struct Entry {
        var id: String
        var headers: [String: String] = [:]
        var text = ""
    }

    private static var root: String {
        String(#filePath.dropLast("Tests/dldTests/CatalogTests.swift".count))
    }

    private static func entries() throws -> [Entry] {
        var entries: [Entry] = []
        var isInText = false
        for line in try text("systemd/dld.catalog").split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("#") { continue }
            if line.hasPrefix("-- ") {
                entries.append(Entry(id: String(line.dropFirst(3))))
                isInText = false
            } else if let last = entries.indices.last {
                if isInText {
                    entries[last].text += line + "\n"
                } else if let colon = line.firstIndex(of: ":") {
                    entries[last].headers[String(line[..<colon])] = String(line[colon...].dropFirst(2))
                } else {
                    isInText = true
                }
            }
        }
        return entries
    }

    private static func text(_ path: String) throws -> String {
        String(decoding: try Data(contentsOf: URL(filePath: root + path)), as: UTF8.self)
    }

    @Test("every message id is one of 128 bits, and none is used twice")
    func ids() {
        let ids = TaskLogKind.allCases.map(\.messageID)
        #expect(Set(ids).count == ids.count)
        for id in ids { #expect(id.count == 32 && id.allSatisfy { "0123456789abcdef".contains($0) }) }
    }

    @Test("the catalogue explains every message id, and no other")
    func catalogue() throws {
        let entries = try Self.entries()
        #expect(entries.map(\.id) == TaskLogKind.allCases.map(\.messageID))
        for entry in entries {
            #expect(entry.headers["Defined-By"] == "dld" && entry.headers["Subject"]?.isEmpty == false)
            #expect(!entry.text.isEmpty)
        }
    }

    @Test("the catalogue names only fields that entries have")
    func fields() throws {
        let known = Set(JournalFields.names.values).union(["DLD_CALLER"])
        for entry in try Self.entries() {
            let words = "\(entry.headers) \(entry.text)".split(separator: "@", omittingEmptySubsequences: false)
            for (index, word) in words.enumerated() where index % 2 == 1 {
                #expect(known.contains(String(word)), "\(word) in \(entry.id)")
            }
        }
    }

    @Test("the documentation lists every message id with its name, and every field")
    func documentation() throws {
        let page = try Self.text("docs/administration.md")
        for kind in TaskLogKind.allCases {
            #expect(page.contains("| `\(kind.rawValue)` |") && page.contains("`\(kind.messageID)`"), "\(kind)")
        }
        for name in JournalFields.names.values { #expect(page.contains("`\(name)`"), "\(name)") }
    }
}
