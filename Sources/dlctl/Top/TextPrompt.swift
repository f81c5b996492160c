import TerminalScreen

/// A line of text that the user edits.
struct TextPrompt: Equatable {
    enum Purpose: Equatable {
        case search, batch, add
        case rate(of: TopTarget)
    }

    /// The maximum number of characters.
    private static let limit = 16_384

    var purpose: Purpose
    private(set) var characters: [Character] = []
    /// The number of characters before the cursor.
    private(set) var cursor = 0
    /// The change that was sent to the daemon and is not answered yet. The prompt stays open for a refusal.
    var sent: TopAction?

    var text: String { String(characters) }
    /// Whether the prompt asks for a rate limit.
    var isRate: Bool { if case .rate = purpose { true } else { false } }

    init(_ purpose: Purpose, text: String = "") {
        self.purpose = purpose
        characters = Array(text)
        cursor = characters.count
    }

    /// Edits the text.
    ///
    /// - Returns: whether the key edits a text.
    mutating func handle(_ key: Key) -> Bool {
        switch key {
        case .character(let character): insert([character])
        case .paste(let text):
            // Line ends separate words; other controls have no place in a line.
            let words = text.split { $0.isNewline || $0 == "\t" }
            insert(Array(words.joined(separator: " ")).filter { !$0.unicodeScalars.contains(where: Self.isControl) })
        case .backspace where cursor > 0:
            cursor -= 1
            characters.remove(at: cursor)
        case .delete where cursor < characters.count: characters.remove(at: cursor)
        case .backspace, .delete: break
        case .left, .control("b"): cursor = max(0, cursor - 1)
        case .right, .control("f"): cursor = min(characters.count, cursor + 1)
        case .home, .control("a"): cursor = 0
        case .end, .control("e"): cursor = characters.count
        case .control("u"):
            characters.removeFirst(cursor)
            cursor = 0
        case .control("k"): characters.removeLast(characters.count - cursor)
        case .control("w"):
            let kept = characters[..<cursor].reversed().drop { $0 == " " }.drop { $0 != " " }.count
            characters.removeSubrange(kept..<cursor)
            cursor = kept
        default: return false
        }
        return true
    }

    private mutating func insert(_ added: [Character]) {
        let added = added.prefix(max(0, Self.limit - characters.count))
        characters.insert(contentsOf: added, at: cursor)
        // A combining mark joins the character before it.
        let joined = Array(String(characters[..<(cursor + added.count)]))
        characters = joined + characters[(cursor + added.count)...]
        cursor = joined.count
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool { scalar.properties.generalCategory == .control }
}
