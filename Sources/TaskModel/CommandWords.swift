/// The words of a command line, before a parser sees them.
public enum CommandWords {
    /// Parts `--name=` into the name and an empty value: the argument parser would take the next word for the value.
    /// What follows a bare `--` stays as it is.
    public static func parted(_ words: [String]) -> [String] {
        let options = words.prefix { $0 != "--" }
        return options.flatMap { lacksValue($0) ? [String($0.dropLast()), ""] : [$0] } + words[options.endIndex...]
    }

    /// Whether the first equals sign of an option is its end.
    private static func lacksValue(_ word: String) -> Bool {
        let bytes = word.utf8
        guard bytes.first == UInt8(ascii: "-"), let equals = bytes.firstIndex(of: UInt8(ascii: "="))
        else { return false }
        return bytes.index(after: equals) == bytes.endIndex && bytes[..<equals].contains { $0 != UInt8(ascii: "-") }
    }
}
