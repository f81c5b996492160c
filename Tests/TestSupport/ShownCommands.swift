import FoundationEssentials

/// The commands that documents and help texts show to users.
package enum ShownCommands {
    /// The root of the repository.
    private static let root =
        URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// The documents for users, as paths from the root.
    package static func documents() throws -> [String] {
        let pages = try FileManager.default.contentsOfDirectory(atPath: root.path + "/docs")
        return ["README.md"] + pages.filter { $0.hasSuffix(".md") }.sorted().map { "docs/" + $0 }
    }

    /// Returns the commands of `program` in a document: lines of shell blocks, and of consoles after the prompt.
    package static func commands(of program: String, inDocument path: String) throws -> [String] {
        var commands: [String] = []
        var block: Substring?
        for line in try String(contentsOfFile: root.path + "/" + path, encoding: .utf8).split(separator: "\n") {
            if line.hasPrefix("```") {
                block = block == nil ? line.dropFirst(3) : nil
            } else if block == "sh" || block == "console" && line.hasPrefix("$ ") {
                let command = line.trimmingPrefix("$ ").drop { $0 == " " }
                if command == program || command.hasPrefix(program + " ") { commands.append(String(command)) }
            }
        }
        return commands
    }

    /// Returns the commands in the examples of a help text. What follows two spaces is an explanation.
    package static func commands(of program: String, inHelp help: String) -> [String] {
        let lines = help.split(separator: "\n").drop { $0 != "EXAMPLES:" }.dropFirst()
        return lines.prefix { $0.hasPrefix("  ") }.compactMap { line in
            let command = line.trimmingPrefix("  ")
            guard command == program || command.hasPrefix(program + " ") else { return nil }
            return command.firstRange(of: "  ").map { String(command[..<$0.lowerBound]) } ?? String(command)
        }
    }

    /// Returns the arguments of a command: its words as the shell reads them, up to a pipe, a redirection or a comment.
    package static func arguments(of command: String) -> [String] {
        var words: [String] = []
        var word: String?
        var quote: Character?
        for character in command {
            if let open = quote {
                if character == open { quote = nil } else { word?.append(character) }
            } else if character == "'" || character == "\"" {
                quote = character
                word = word ?? ""
            } else if character.isWhitespace {
                if let word { words.append(word) }
                word = nil
            } else if "|>;&".contains(character) || character == "#" && word == nil {
                break
            } else {
                word = (word ?? "") + String(character)
            }
        }
        return Array((words + [word].compactMap(\.self)).dropFirst())
    }
}
