import Crypto
import FoundationEssentials

/// The digest of a public key (RFC 7469, section 2.4): SHA-256 over its SubjectPublicKeyInfo.
public struct PublicKeyPin: Sendable, Hashable, CustomStringConvertible {
    /// `sha256//` and 44 characters of base64, as curl has it.
    public let description: String

    /// - Returns: `nil` where `text` is not base64 of 32 bytes, with or without `sha256//` before it.
    public init?(_ text: String) {
        let digits = text.hasPrefix("sha256//") ? String(text.dropFirst(8)) : text
        guard let bytes = Data(base64Encoded: digits), bytes.count == 32 else { return nil }
        description = "sha256//" + digits
    }

    /// The pin of a certificate's key.
    ///
    /// - Parameter certificate: PEM; the first certificate counts.
    /// - Returns: `nil` where there is none that can be read.
    public init?(certificate: String) {
        guard let bytes = PEM.certificate(in: certificate), let key = X509.subjectPublicKeyInfo(in: bytes) else {
            return nil
        }
        description = "sha256//" + Data(SHA256.hash(data: key)).base64EncodedString()
    }
}

/// The armour around a certificate (RFC 7468).
enum PEM {
    /// - Returns: the first certificate's bytes, DER.
    static func certificate(in text: String) -> [UInt8]? {
        guard let begin = text.firstRange(of: "-----BEGIN CERTIFICATE-----"),
            let end = text[begin.upperBound...].firstRange(of: "-----END CERTIFICATE-----")
        else { return nil }
        let digits = text[begin.upperBound..<end.lowerBound].filter { !$0.isWhitespace }
        return Data(base64Encoded: String(digits)).map { Array($0) }
    }
}

/// As much of a certificate's form as it takes to find its key (RFC 5280, section 4.1).
enum X509 {
    /// - Returns: the SubjectPublicKeyInfo, with its tag and length.
    static func subjectPublicKeyInfo(in certificate: [UInt8]) -> ArraySlice<UInt8>? {
        var whole = certificate[...]
        guard var fields = element(&whole, tag: 0x30)?.content, var signed = element(&fields, tag: 0x30)?.content else {
            return nil
        }
        // The version is optional; serial number, signature, issuer, validity and subject are not.
        if signed.first == 0xA0 { guard element(&signed, tag: 0xA0) != nil else { return nil } }
        for tag: UInt8 in [0x02, 0x30, 0x30, 0x30, 0x30] { guard element(&signed, tag: tag) != nil else { return nil } }
        return element(&signed, tag: 0x30)?.whole
    }

    /// Takes an element (X.690, section 8.1) off the front of `bytes`.
    private static func element(
        _ bytes: inout ArraySlice<UInt8>, tag: UInt8
    ) -> (whole: ArraySlice<UInt8>, content: ArraySlice<UInt8>)? {
        guard bytes.first == tag, bytes.count >= 2 else { return nil }
        let start = bytes.startIndex
        var index = start + 1
        var length = Int(bytes[index])
        index += 1
        if length >= 0x80 {
            let count = length - 0x80
            guard (1...4).contains(count), bytes.endIndex - index >= count else { return nil }
            length = bytes[index..<(index + count)].reduce(0) { $0 << 8 | Int($1) }
            index += count
        }
        guard bytes.endIndex - index >= length else { return nil }
        let end = index + length
        defer { bytes = bytes[end...] }
        return (bytes[start..<end], bytes[index..<end])
    }
}
