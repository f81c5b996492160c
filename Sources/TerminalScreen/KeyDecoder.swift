/// A decoder of a terminal's input bytes: UTF-8, and the key sequences of ECMA-48 and xterm.
///
/// Unknown sequences are skipped as a whole, so that none of their bytes is taken for a key. Memory is bounded for any
/// input.
public struct KeyDecoder: Sendable {
    private enum State: Equatable {
        case ground
        case escape
        /// A control sequence with the parameter bytes so far.
        case sequence([UInt8])
        /// A control sequence that is too long, skipped up to its end.
        case skipping
        /// The byte after ESC O.
        case singleShift
        /// A UTF-8 sequence and the number of its bytes that are missing.
        case partial([UInt8], missing: Int)
    }

    /// The maximum number of parameter bytes of a control sequence.
    private static let sequenceLimit = 32
    /// The maximum size of pasted text in bytes; the rest is dropped.
    public static let pasteLimit = 65_536
    /// The end of pasted text, `ESC [ 201 ~`.
    private static let pasteEnd = Array("\u{1B}[201~".utf8)

    private var state = State.ground
    /// The pasted bytes; `nil` outside a paste.
    private var pasted: [UInt8]?
    /// The number of bytes of ``pasteEnd`` that were read last.
    private var matched = 0

    public init() {}

    /// Whether the last byte was ESC, which is either the Escape key or the start of a sequence. If no byte follows
    /// soon, ``endEscape()`` decides.
    public var awaitsSequence: Bool { pasted == nil && state == .escape }

    /// Takes a single ESC for the Escape key.
    public mutating func endEscape() -> [Key] {
        guard awaitsSequence else { return [] }
        state = .ground
        return [.escape]
    }

    /// Decodes bytes in the order in which they arrived.
    public mutating func feed(_ bytes: some Sequence<UInt8>) -> [Key] {
        var keys: [Key] = []
        for byte in bytes { feed(byte, &keys) }
        return keys
    }

    private mutating func feed(_ byte: UInt8, _ keys: inout [Key]) {
        if pasted != nil { return paste(byte, &keys) }
        switch state {
        case .ground: ground(byte, &keys)
        case .escape: escape(byte, &keys)
        case .sequence(let parameters):
            switch byte {
            case 0x40...0x7E:
                state = .ground
                end(parameters, byte, &keys)
            case 0x20...0x3F:
                state = parameters.count < Self.sequenceLimit ? .sequence(parameters + [byte]) : .skipping
            default: interrupt(byte, &keys)
            }
        case .skipping:
            switch byte {
            case 0x40...0x7E: state = .ground
            case 0x20...0x3F: break
            default: interrupt(byte, &keys)
            }
        case .singleShift:
            state = .ground
            if let key = Self.shifted(byte) {
                keys.append(key)
            } else if byte < 0x20 || byte > 0x7E {
                interrupt(byte, &keys)
            }
        case .partial(let start, let missing):
            guard byte & 0xC0 == 0x80 else { return interrupt(byte, &keys) }
            guard missing == 1 else {
                state = .partial(start + [byte], missing: missing - 1)
                return
            }
            state = .ground
            if let text = String(validating: start + [byte], as: UTF8.self) {
                keys += text.filter { !Self.isControl($0) }.map { .character($0) }
            }
        }
    }

    /// Drops an incomplete sequence and starts anew with `byte`.
    private mutating func interrupt(_ byte: UInt8, _ keys: inout [Key]) {
        state = .ground
        ground(byte, &keys)
    }

    private static func isControl(_ character: Character) -> Bool {
        character.unicodeScalars.contains { $0.properties.generalCategory == .control }
    }

    private mutating func ground(_ byte: UInt8, _ keys: inout [Key]) {
        switch byte {
        case 0x1B: state = .escape
        case 0x0D, 0x0A: keys.append(.enter)
        case 0x09: keys.append(.tab)
        case 0x08, 0x7F: keys.append(.backspace)
        case 0x01...0x1A: keys.append(.control(Character(Unicode.Scalar(byte + 0x60))))
        case 0x20...0x7E: keys.append(.character(Character(Unicode.Scalar(byte))))
        case 0xC2...0xDF: state = .partial([byte], missing: 1)
        case 0xE0...0xEF: state = .partial([byte], missing: 2)
        case 0xF0...0xF4: state = .partial([byte], missing: 3)
        // NUL, the controls without a letter, and bytes that no UTF-8 sequence begins with.
        default: break
        }
    }

    private mutating func escape(_ byte: UInt8, _ keys: inout [Key]) {
        switch byte {
        case UInt8(ascii: "["): state = .sequence([])
        case UInt8(ascii: "O"): state = .singleShift
        case 0x1B: keys.append(.escape)
        case 0x20...0x7E:
            state = .ground
            keys.append(.alt(Character(Unicode.Scalar(byte))))
        default:
            keys.append(.escape)
            interrupt(byte, &keys)
        }
    }

    private mutating func end(_ parameters: [UInt8], _ final: UInt8, _ keys: inout [Key]) {
        let text = String(decoding: parameters, as: UTF8.self)
        if final == UInt8(ascii: "~") {
            // A modifier may follow the number: `3;5`.
            let number = text.split(separator: ";", maxSplits: 1).first.flatMap { Int($0) }
            if number == 200 {
                pasted = []
                matched = 0
            } else if let key = number.flatMap(Self.numbered) {
                keys.append(key)
            }
            return
        }
        // The parameters of these keys are modifiers at most.
        guard parameters.allSatisfy({ (0x30...0x39).contains($0) || $0 == UInt8(ascii: ";") }) else { return }
        if final == UInt8(ascii: "Z") {
            keys.append(.backTab)
        } else if let key = Self.shifted(final) {
            keys.append(key)
        }
    }

    private static func shifted(_ final: UInt8) -> Key? {
        switch final {
        case UInt8(ascii: "A"): .up
        case UInt8(ascii: "B"): .down
        case UInt8(ascii: "C"): .right
        case UInt8(ascii: "D"): .left
        case UInt8(ascii: "H"): .home
        case UInt8(ascii: "F"): .end
        case UInt8(ascii: "M"): .enter
        case UInt8(ascii: "P")...UInt8(ascii: "S"): .function(Int(final - UInt8(ascii: "P")) + 1)
        default: nil
        }
    }

    private static func numbered(_ number: Int) -> Key? {
        switch number {
        case 1, 7: .home
        case 2: .insert
        case 3: .delete
        case 4, 8: .end
        case 5: .pageUp
        case 6: .pageDown
        case 11...15: .function(number - 10)
        case 17...21: .function(number - 11)
        case 23, 24: .function(number - 12)
        default: nil
        }
    }

    private mutating func paste(_ byte: UInt8, _ keys: inout [Key]) {
        guard var text = pasted else { return }
        if byte == Self.pasteEnd[matched] {
            matched += 1
            guard matched == Self.pasteEnd.count else { return }
            pasted = nil
            keys.append(.paste(String(decoding: text, as: UTF8.self)))
            return
        }
        // The bytes that looked like the end were text. ESC can only be the first byte of the end.
        text += Self.pasteEnd[..<matched]
        matched = byte == 0x1B ? 1 : 0
        if matched == 0 { text.append(byte) }
        if text.count > Self.pasteLimit { text.removeLast(text.count - Self.pasteLimit) }
        pasted = text
    }
}
