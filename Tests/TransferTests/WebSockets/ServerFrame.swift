@testable import Transfer

/// Frames as a server sends them: without a mask.
enum ServerFrame {
    /// - Parameters:
    ///   - first: the first byte: the FIN bit, the reserved bits and the opcode.
    ///   - form: the form of the length in bits, 7, 16 or 64; `nil` for the shortest.
    static func raw(_ first: UInt8, _ payload: [UInt8], form: Int? = nil, length: UInt64? = nil) -> [UInt8] {
        let count = length ?? UInt64(payload.count)
        switch form ?? (count < 126 ? 7 : count <= 0xFFFF ? 16 : 64) {
        case 7: return [first, UInt8(count)] + payload
        case 16: return [first, 126, UInt8(truncatingIfNeeded: count >> 8), UInt8(truncatingIfNeeded: count)] + payload
        default:
            return [first, 127] + stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: count >> $0) }
                + payload
        }
    }

    static func bytes(_ opcode: WebSocketOpcode, isFinal: Bool = true, _ payload: [UInt8]) -> [UInt8] {
        raw(opcode.rawValue | (isFinal ? 0x80 : 0), payload)
    }

    static func text(_ text: String) -> [UInt8] { bytes(.text, Array(text.utf8)) }

    static func close(_ code: UInt16, _ reason: String = "") -> [UInt8] {
        bytes(.close, [UInt8(code >> 8), UInt8(truncatingIfNeeded: code)] + reason.utf8)
    }

    /// Returns a message in random fragments, with pings between them.
    static func fragments(
        _ opcode: WebSocketOpcode, _ payload: [UInt8], using random: inout some RandomNumberGenerator
    ) -> [UInt8] {
        var (frames, rest, opcode): ([UInt8], ArraySlice<UInt8>, WebSocketOpcode) = ([], payload[...], opcode)
        while true {
            let count = Int.random(in: 0...max(1, rest.count), using: &random)
            let isFinal = count >= rest.count && Bool.random(using: &random)
            frames += bytes(opcode, isFinal: isFinal, Array(rest.prefix(count)))
            if isFinal { return frames }
            rest = rest.dropFirst(count)
            opcode = .continuation
            if Int.random(in: 0..<4, using: &random) == 0 { frames += bytes(.ping, [1]) }
        }
    }
}

/// A generator of reproducible random numbers (SplitMix64).
struct WebSocketRandom: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}
