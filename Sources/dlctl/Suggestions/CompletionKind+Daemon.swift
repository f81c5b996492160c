import ArgumentParser

extension CompletionKind {
    /// The ids of tasks.
    static let taskIDs = daemon { $0.taskIDs() }
    /// The names of batches.
    static let batches = daemon { $0.batches() }
    /// The hosts of tasks, as the beginnings of URLs.
    static let hosts = daemon { $0.hosts() }

    private static func daemon(_ words: @escaping @Sendable (Suggestions) -> [Suggestions.Word]) -> CompletionKind {
        .custom { line, _, prefix in
            let beginning = Suggestions.value(in: prefix)
            let suggested = words(Suggestions(words: line)).filter { $0.text.hasPrefix(beginning) }
            return suggested.compactMap { $0.candidate(for: CompletionShell.requesting) }
        }
    }
}

extension Suggestions.Word {
    /// Returns the line for a shell's completion script; `nil` for a word that the shell might not take literally.
    ///
    /// bash expands the words that a script offers: one with `$(…)` would be executed (compgen -W, bash(1)). A name of
    /// another user's batch must not run a command.
    func candidate(for shell: CompletionShell?) -> String? {
        guard !text.isEmpty, text.utf8.allSatisfy(Self.isLiteral) else { return nil }
        guard let description else { return shell == .zsh ? escaped(text) : text }
        // The printable characters of ASCII without the backslash.
        let shown = String(
            decoding: description.map { character in
                character.asciiValue.flatMap { 0x20..<0x7F ~= $0 && $0 != 0x5C ? $0 : nil } ?? UInt8(ascii: "?")
            }, as: UTF8.self)
        return switch shell {
        case .zsh?: escaped(text) + ":" + shown
        case .fish?: text + "\t" + shown
        default: text
        }
    }

    private func escaped(_ text: String) -> String {
        // zsh's _describe separates the word from its description at the first colon.
        text.split(separator: ":", omittingEmptySubsequences: false).joined(separator: "\\:")
    }

    private static func isLiteral(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "-._/:@%+,=[]".utf8.contains(byte)
        }
    }
}
