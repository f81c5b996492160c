/// The kind of a frame (RFC 6455, section 5.2).
enum WebSocketOpcode: UInt8, CaseIterable, Sendable {
    case continuation = 0
    case text = 1
    case binary = 2
    case close = 8
    case ping = 9
    case pong = 10

    var isControl: Bool { rawValue >= 8 }
}

/// A frame as a client sends it, and the header of a received one.
///
/// libcurl 7.88 has functions for frames, `curl_ws_send` and `curl_ws_recv`, but nothing correct can be built on them:
/// - `curl_ws_send` writes a wrong length for payloads of exactly 126 bytes and of more than 65,535 bytes, and uses one
///   masking key for the whole connection, although each frame needs a fresh one (RFC 6455, section 5.3).
/// - `curl_ws_recv` does not tell a fragment from a whole message, loses the first bytes of a frame whose header arrives
///   in two pieces, does not report empty messages, and answers a ping only if its payload arrives at once.
/// - Frames that arrive together with the server's handshake can only be read with `curl_ws_recv`, even if
///   `CURLWS_RAW_MODE` is set, which changes sending and the write callback alone.
///
/// So libcurl makes the connection, through proxies and with TLS; the handshake and the frames are made here, as
/// values without I/O.
enum WebSocketFrame {
    /// The maximum payload of a control frame in bytes (RFC 6455, section 5.5).
    static let longestControl = 125
    /// The maximum size of a header in bytes.
    static let longestHeader = 14

    /// Returns the bytes of a frame.
    ///
    /// - Parameters:
    ///   - isFinal: whether it is the last frame of its message.
    ///   - mask: the masking key, fresh and unpredictable for each frame (RFC 6455, section 5.3).
    static func bytes(
        _ opcode: WebSocketOpcode, isFinal: Bool = true, _ payload: ArraySlice<UInt8>, mask: UInt32
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(payload.count + longestHeader)
        bytes.append(opcode.rawValue | (isFinal ? 0x80 : 0))
        let count = payload.count
        if count < 126 {
            bytes.append(0x80 | UInt8(count))
        } else if count <= 0xFFFF {
            bytes.append(0x80 | 126)
            for shift in [8, 0] { bytes.append(UInt8(truncatingIfNeeded: count >> shift)) }
        } else {
            bytes.append(0x80 | 127)
            for shift in stride(from: 56, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: count >> shift))
            }
        }
        for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: mask >> UInt32(shift))) }
        let start = bytes.count
        bytes += payload
        bytes.withUnsafeMutableBytes { apply(mask, to: UnsafeMutableRawBufferPointer(rebasing: $0[start...])) }
        return bytes
    }

    /// Masks bytes, eight at a time (RFC 6455, section 5.3).
    private static func apply(_ mask: UInt32, to bytes: UnsafeMutableRawBufferPointer) {
        guard mask != 0 else { return }
        let word = UInt64(mask.bigEndian) << 32 | UInt64(mask.bigEndian)
        let whole = bytes.count & ~7
        var offset = 0
        while offset < whole {
            let masked = bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self) ^ word
            bytes.storeBytes(of: masked, toByteOffset: offset, as: UInt64.self)
            offset += 8
        }
        while offset < bytes.count {
            bytes[offset] ^= UInt8(truncatingIfNeeded: mask >> UInt32(24 - 8 * (offset & 3)))
            offset += 1
        }
    }
}
