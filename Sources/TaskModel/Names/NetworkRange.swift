import Glibc

/// A range of IP addresses in CIDR notation (RFC 4632): `10.0.0.0/8`, `fd00::/8`, or a single address.
public enum NetworkRange: Sendable, Hashable {
    case ipv4(UInt32, prefixLength: Int)
    case ipv6(UInt128, prefixLength: Int)

    /// A description of the syntax that ``init(parsing:)`` accepts, for error messages.
    public static let expectation = "networks such as [127.0.0.0/8, '::1', 10.0.0.0/8, 'fd00::/8']"

    /// The error for text that is not a valid range. The message says why.
    public struct Refusal: Error, Equatable {
        public let message: String
    }

    public init(parsing text: String) throws(Refusal) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let (number, width) = Self.address(String(first)) else {
            throw Refusal(message: "\"\(text)\" does not begin with an IP address; give \(Self.expectation)")
        }
        let length: Int
        if parts.count == 2 {
            let digits = parts[1]
            guard (1...3).contains(digits.utf8.count), digits.utf8.allSatisfy(\.isDigit),
                let given = Int(digits), given <= width
            else { throw Refusal(message: "\"\(text)\" must end in a prefix length from /0 to /\(width)") }
            length = given
        } else {
            length = width
        }
        let rest = UInt128(width - length)
        // Swift's smart shift by the full bit width yields 0, so a prefix length of 0 works.
        let lowest = (number >> rest) << rest
        guard lowest == number else {
            let network = Self.text(lowest, width: width)
            throw Refusal(message: "\"\(text)\" has bits beyond its prefix; is it \(network)/\(length) or \(first)?")
        }
        // IPv4-mapped IPv6 ranges (RFC 4291, section 2.5.5.2) cover IPv4 addresses, so they must be written as IPv4.
        if width == 128, length >= 96, number >> 32 == 0xFFFF {
            throw Refusal(
                message:
                    "\"\(text)\" is an IPv4 network; write \(Self.text(number & 0xFFFF_FFFF, width: 32))/\(length - 96)"
            )
        }
        self =
            width == 32
            ? .ipv4(UInt32(truncatingIfNeeded: number), prefixLength: length) : .ipv6(number, prefixLength: length)
    }

    private static func address(_ text: String) -> (number: UInt128, width: Int)? {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = inet_pton(AF_INET, text, &bytes) == 1 ? 4 : inet_pton(AF_INET6, text, &bytes) == 1 ? 16 : 0
        guard count > 0, !text.utf8.contains(0) else { return nil }
        return (bytes[..<count].reduce(0) { $0 << 8 | UInt128($1) }, 8 * count)
    }

    private static func text(_ number: UInt128, width: Int) -> String {
        var bytes = stride(from: width - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> UInt128($0)) }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        // The buffer holds the longest address, so the call cannot fail for lack of space.
        _ = inet_ntop(width == 32 ? AF_INET : AF_INET6, &bytes, &text, socklen_t(text.count))
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
