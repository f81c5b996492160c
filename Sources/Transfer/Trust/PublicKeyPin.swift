import Crypto
import FoundationEssentials

/// A pin of a public key (RFC 7469, section 2.4): the SHA-256 digest of its SubjectPublicKeyInfo.
public struct PublicKeyPin: Sendable, Hashable, CustomStringConvertible {
    /// The pin in curl's format: `sha256//` and 44 base64 characters.
    public let description: String

    /// Creates a pin from its text.
    ///
    /// - Returns: `nil` if `text` is not 32 bytes in base64, with or without the prefix `sha256//`.
    public init?(_ text: String) {
        let digits = text.hasPrefix("sha256//") ? String(text.dropFirst(8)) : text
        guard let bytes = Data(base64Encoded: digits), bytes.count == 32 else { return nil }
        description = "sha256//" + digits
    }

    /// Creates the pin of a certificate's public key.
    ///
    /// - Parameter certificate: PEM text; the first certificate is used.
    /// - Returns: `nil` if the text contains no readable certificate.
    public init?(certificate: String) {
        guard let bytes = PEM.certificate(in: certificate) else { return nil }
        self.init(der: bytes)
    }

    /// Creates the pin of a certificate's public key.
    ///
    /// - Parameter der: the certificate in DER.
    init?(der: [UInt8]) {
        guard let key = X509.subjectPublicKeyInfo(in: der) else { return nil }
        description = "sha256//" + Data(SHA256.hash(data: key)).base64EncodedString()
    }
}

/// A decoder for PEM certificates (RFC 7468).
enum PEM {
    /// Returns the DER bytes of the first certificate in a text.
    static func certificate(in text: String) -> [UInt8]? {
        guard let begin = text.firstRange(of: "-----BEGIN CERTIFICATE-----"),
            let end = text[begin.upperBound...].firstRange(of: "-----END CERTIFICATE-----")
        else { return nil }
        let digits = text[begin.upperBound..<end.lowerBound].filter { !$0.isWhitespace }
        return Data(base64Encoded: String(digits)).map { Array($0) }
    }
}

/// A parser for the part of an X.509 certificate that contains the public key (RFC 5280, section 4.1).
enum X509 {
    /// Returns the SubjectPublicKeyInfo with its tag and length.
    static func subjectPublicKeyInfo(in certificate: [UInt8]) -> ArraySlice<UInt8>? {
        var whole = certificate[...]
        guard var fields = element(&whole, tag: 0x30)?.content, var signed = element(&fields, tag: 0x30)?.content else {
            return nil
        }
        // The version is optional; serial number, signature, issuer, validity and subject are required.
        if signed.first == 0xA0 { guard element(&signed, tag: 0xA0) != nil else { return nil } }
        for tag: UInt8 in [0x02, 0x30, 0x30, 0x30, 0x30] { guard element(&signed, tag: tag) != nil else { return nil } }
        return element(&signed, tag: 0x30)?.whole
    }

    /// Removes the first element of `bytes` (X.690, section 8.1).
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
