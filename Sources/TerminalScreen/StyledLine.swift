/// The look of a part of a line.
public struct TextStyle: Sendable, Equatable {
    public enum Colour: Int, Sendable {
        case red = 31
        case green, yellow, blue, magenta, cyan
    }

    public var colour: Colour?
    public var isBold: Bool
    public var isDim: Bool
    /// Whether foreground and background are exchanged.
    public var isReversed: Bool

    public init(colour: Colour? = nil, isBold: Bool = false, isDim: Bool = false, isReversed: Bool = false) {
        self.colour = colour
        self.isBold = isBold
        self.isDim = isDim
        self.isReversed = isReversed
    }

    public static let plain = TextStyle()
    public static let bold = TextStyle(isBold: true)
    public static let dim = TextStyle(isDim: true)
    public static let reversed = TextStyle(isReversed: true)

    public static func colour(_ colour: Colour) -> TextStyle { TextStyle(colour: colour) }

    /// The parameters of SGR (ECMA-48, section 8.3.117), or an empty text.
    fileprivate func parameters(allowsColour: Bool) -> String {
        var codes: [String] = []
        if isBold { codes.append("1") }
        // Dim text is a colour to people who turn colours off.
        if isDim, allowsColour { codes.append("2") }
        if isReversed { codes.append("7") }
        if let colour, allowsColour { codes.append("\(colour.rawValue)") }
        return codes.joined(separator: ";")
    }
}

/// A line of a screen.
public struct StyledLine: Sendable, Equatable {
    public struct Span: Sendable, Equatable {
        public var text: String
        public var style: TextStyle
        /// The column at which the text begins, from 0; `nil` for the one behind the text before.
        public var column: Int?
    }

    public private(set) var spans: [Span] = []
    /// The style of the whole row, also where there is no text.
    private var background: TextStyle?

    public init() {}

    public init(_ text: String, _ style: TextStyle = .plain) { append(text, style) }

    /// Appends a text.
    ///
    /// - Parameter column: the column at which the text begins, for text behind characters of whose width terminals
    ///   disagree.
    public mutating func append(_ text: String, _ style: TextStyle = .plain, at column: Int? = nil) {
        if !text.isEmpty { spans.append(Span(text: text, style: style, column: column)) }
    }

    public mutating func append(_ line: StyledLine) { spans += line.spans }

    /// The text without its styles.
    public var text: String { spans.reduce("") { $0 + $1.text } }

    /// Returns this line with foreground and background exchanged, over the whole row.
    public var reversed: StyledLine {
        var line = self
        let style = TextStyle(isBold: true, isReversed: true)
        for index in line.spans.indices { line.spans[index].style = style }
        line.background = style
        return line
    }

    /// Returns the bytes for the terminal. A control character, which could drive the terminal, becomes `?`.
    ///
    /// - Parameter columns: the width of the row.
    func encoded(allowsColour: Bool, columns: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        // The text is written over blanks: how many would be missing behind it depends on the terminal.
        if let parameters = background?.parameters(allowsColour: allowsColour) {
            bytes += Array("\u{1B}[\(parameters)m\(String(repeating: " ", count: max(0, columns)))\u{1B}[0m\r".utf8)
        }
        for span in spans {
            if let column = span.column { bytes += Array("\u{1B}[\(max(0, column) + 1)G".utf8) }
            let parameters = span.style.parameters(allowsColour: allowsColour)
            if !parameters.isEmpty { bytes += Array("\u{1B}[\(parameters)m".utf8) }
            for scalar in span.text.unicodeScalars {
                if scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) {
                    bytes.append(UInt8(ascii: "?"))
                } else {
                    bytes += Array(UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
                }
            }
            if !parameters.isEmpty { bytes += Array("\u{1B}[0m".utf8) }
        }
        return bytes
    }
}
