import TaskFiles
import TaskModel
import TestSupport
import Testing

@testable import TaskQueue

@Suite("A hundred thousand names from every source of one")
struct HostileNamesTests {
    enum Source: CaseIterable {
        case output, directory, header, url, metalink, metalinkOfURL, queueFile, change, resumeData

        var count: Int {
            switch self {
            case .output, .resumeData: 23_000
            case .directory: 15_000
            case .url, .header: 15_000
            case .change: 5_000
            // Sources that parse a file take longer.
            case .metalink, .metalinkOfURL: 3_000
            case .queueFile: 1_500
            }
        }

        /// The sampling interval: one case in this number is written to the disk.
        static let sampling = 30
    }

    @Test("are tried")
    func count() {
        #expect(Source.allCases.map(\.count).reduce(0, +) >= 100_000)
    }

    @Test("a trial notices what changes around the roots")
    func attentive() throws {
        let trial = try NameTrial()
        #expect(trial.changes.isEmpty)
        trial.meddle()
        #expect(trial.changes.map(FileName.last) == ["a", "new"])
    }

    @Test("each is refused by the name of its field, or ends beneath its root", arguments: Source.allCases)
    func staysBeneath(source: Source) async throws {
        let trial = try NameTrial()
        var names = HostileNames(seed: 11)
        for index in 0..<source.count {
            guard let item = try make(source, &names, trial) else {
                trial.refuse()
                continue
            }
            try await trial.attempt(item, writes: index.isMultiple(of: Source.sampling))
        }
        #expect(trial.changes == [])
        #expect(trial.opened >= source.count / 10 && trial.written > 0, "\(trial.opened), \(trial.written)")
        if source != .header, source != .resumeData { #expect(trial.refused >= source.count / 50) }
    }

    // MARK: Sources

    /// - Returns: `nil` if the file that would contain the name is refused.
    private func make(
        _ source: Source, _ names: inout HostileNames, _ trial: NameTrial
    ) throws -> NameTrial.Case? {
        var item = NameTrial.Case(specification: TaskSpecification(url: "http://h/url.iso"))
        item.specification.onConflict = names.pick([nil, .rename, .overwrite])
        let roots = [trial.home, trial.other]
        switch source {
        case .output:
            item.specification.output = names.name()
            item.fields = ["output"]
        case .directory:
            item.specification.directory = names.directory(roots)
            if names.happens(4) { item.specification.output = names.name() }
            item.fields = ["directory", "output"]
        case .header: item.head = header(&names)
        case .url:
            item.specification.url = url(&names)
            item.fields = ["url"]
        case .metalink:
            guard let specification = try metalink(&names) else { return nil }
            item.specification = specification
            // The case of `dlctl add --input FILE --directory DIR`, which puts the file's directory beneath DIR.
            if names.happens(3), let inner = specification.directory {
                item.specification.directory = names.directory(roots) + "/" + inner
                item.fields = ["directory"]
            }
        case .metalinkOfURL:
            guard let specification = try metalink(&names) else { return nil }
            item.specification.metalink = true
            item.described = specification.output
        case .queueFile:
            guard let specification = try queueFile(&names, roots) else { return nil }
            item.specification = specification
            // Only the daemon knows whether the directory is beneath a root.
            item.fields = ["directory"]
        case .change:
            var changes = TaskChanges()
            if names.happens(2) { changes.url = url(&names) }
            changes.output = names.happens(4) ? .takeBack : .set(names.name())
            item.before = item.specification
            item.specification = changes.applied(to: item.specification)
            item.fields = ["url", "output"]
        case .resumeData: item.suggested = names.name()
        }
        return item
    }

    private func url(_ names: inout HostileNames) -> String {
        let bytes = names.bytes()
        let path = bytes.map { byte -> String in
            let isPlain = (0x21..<0x7F).contains(byte) || byte >= 0x80
            // Mostly percent-encoded, because an unencoded space ends the URL.
            if isPlain ? names.happens(6) : !names.happens(40) {
                return "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
            return isPlain ? String(decoding: [byte], as: UTF8.self) : " "
        }
        return names.pick(["http://h/", "https://h:8080/a/", "ftp://h/", "http://h"]) + path.joined()
    }

    /// Returns the `Content-Disposition` line of a head, with every notation of a file name.
    private func header(_ names: inout HostileNames) -> [UInt8] {
        func quoted(_ bytes: [UInt8]) -> [UInt8] {
            [0x22] + bytes.flatMap { $0 == 0x22 || $0 == 0x5C ? [0x5C, $0] : [$0] } + [0x22]
        }
        var value = Array(names.pick(["attachment", "inline", "", "attachment;x=y"]).utf8)
        for _ in 0..<names.number(1...2) {
            let bytes = names.bytes()
            switch names.number(0...4) {
            case 0: value += Array("; filename=".utf8) + bytes
            case 1: value += Array("; filename=\"".utf8) + bytes + [0x22]
            case 2: value += Array(";FileName = ".utf8) + quoted(bytes)
            case 3: value += Array("; filename*=UTF-8''".utf8) + Array(names.name().utf8)
            default:
                let encoded = bytes.map { "%" + ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
                value += Array("; filename*=\(names.pick(["utf-8", "UTF-8", "ISO-8859-1"]))'en'\(encoded)".utf8)
            }
        }
        // LF is removed, because the connection delivers single lines.
        value.removeAll { $0 == 0x0A }
        return Array("Content-Disposition: ".utf8) + value + [0x0A]
    }

    private func metalink(_ names: inout HostileNames) throws -> TaskSpecification? {
        let marks: [Unicode.Scalar: String] = ["&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;", "\n": "&#10;"]
        var name = ""
        for scalar in names.name().unicodeScalars {
            // Control characters are not allowed in XML.
            if scalar != "\n", scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value) { continue }
            name += marks[scalar] ?? String(scalar)
        }
        let text = """
            <metalink xmlns="urn:ietf:params:xml:ns:metalink">\
            <file name="\(name)"><url>http://h/a</url></file></metalink>
            """
        return try specification(in: text, naming: ["name"])
    }

    private func queueFile(_ names: inout HostileNames, _ roots: [String]) throws -> TaskSpecification? {
        var text = "downloads:\n  - url: http://h/a\n"
        if names.happens(2) { text += "    output: \(Self.quoted(names.name()))\n" }
        if names.happens(2) { text += "    directory: \(Self.quoted(names.directory(roots)))\n" }
        return try specification(in: text, naming: ["output", "directory"])
    }

    /// Returns the text in double quotation marks (YAML 1.2, section 7.3.1).
    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x20...0x7E where scalar != "\"" && scalar != "\\": quoted.unicodeScalars.append(scalar)
            default:
                let digits = String(scalar.value, radix: 16)
                quoted += "\\U" + String(repeating: "0", count: 8 - digits.count) + digits
            }
        }
        return quoted + "\""
    }

    private func specification(in text: String, naming fields: [String]) throws -> TaskSpecification? {
        do throws(FileError) {
            let file = try InputFile.parse(
                Array(text.utf8), file: "f", baseDirectory: "/base", now: 0, utcOffset: { _ in 0 },
                readFile: { _, _ in [] })
            return file.entries.first?.specification
        } catch {
            guard fields.contains(where: { error.message.contains($0) }), error.line > 0 else {
                throw NameTrial.Escape("\(text) was refused by \(error)")
            }
            return nil
        }
    }
}
