/// The words of a command line, before a parser sees them.
public enum CommandWords {
    /// An argument that is no text: Swift would put a replacement character for the bytes in question.
    public struct Unreadable: Error, Equatable, CustomStringConvertible {
        /// Counted from 1, the program's name being 0.
        public let number: Int

        public var description: String { "argument \(number) is not valid UTF-8" }
    }

    /// The words of this process, its name left out, ``parted(_:)``.
    public static func own() throws(Unreadable) -> [String] {
        parted(try read(CommandLine.unsafeArgv, count: Int(CommandLine.argc)))
    }

    /// - Parameter count: of the pointers, the program's name among them.
    private static func read(
        _ pointers: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>, count: Int
    ) throws(Unreadable) -> [String] {
        var words: [String] = []
        for number in 1..<max(1, count) {
            guard let pointer = pointers[number] else { break }
            guard let word = String(validatingCString: pointer) else { throw Unreadable(number: number) }
            words.append(word)
        }
        return words
    }

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
