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
    }

    public private(set) var spans: [Span] = []

    public init() {}

    public init(_ text: String, _ style: TextStyle = .plain) { append(text, style) }

    public mutating func append(_ text: String, _ style: TextStyle = .plain) {
        if !text.isEmpty { spans.append(Span(text: text, style: style)) }
    }

    public mutating func append(_ line: StyledLine) { spans += line.spans }

    /// The text without its styles.
    public var text: String { spans.reduce("") { $0 + $1.text } }

    /// Returns this line with foreground and background exchanged.
    public var reversed: StyledLine {
        var line = self
        for index in line.spans.indices { line.spans[index].style = TextStyle(isBold: true, isReversed: true) }
        return line
    }

    /// Returns the bytes for the terminal. A control character, which could drive the terminal, becomes `?`.
    func encoded(allowsColour: Bool) -> [UInt8] {
        var bytes: [UInt8] = []
        for span in spans {
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
