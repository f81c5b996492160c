import FoundationEssentials

extension ResponseHead {
    /// The strongest supported digest of the whole representation that the response contains (`Repr-Digest`, RFC 9530,
    /// section 3; also the older `Digest` field of RFC 3230). In a 206 response, too, it covers the whole
    /// representation.
    package var representationDigest: FileDigest? {
        guard contentCoding == nil else { return nil }
        let stated = values(of: "repr-digest").flatMap { Self.members($0, isStructured: true) }
        let older = stated.isEmpty ? values(of: "digest").flatMap { Self.members($0, isStructured: false) } : []
        let found = stated + older
        return found.first { $0.algorithm == .sha512 } ?? found.first { $0.algorithm == .sha256 }
    }

    /// The maximum number of members in a field line. Later ones are ignored.
    private static let maximumMembers = 16

    /// Parses `sha-256=:BASE64:, …` (RFC 8941, section 3.3.5), or the older form without the colons.
    private static func members(_ line: String, isStructured: Bool) -> [FileDigest] {
        line.utf8.split(separator: UInt8(ascii: ",")).prefix(maximumMembers).compactMap { member in
            let text = String(decoding: FieldText.trimmed(member), as: UTF8.self)
            let parts = text.split(separator: "=", maxSplits: 1)
            guard parts.count == 2 else { return nil }
            let algorithm: FileDigest.Algorithm
            switch parts[0].lowercased() {
            case "sha-256": algorithm = .sha256
            case "sha-512": algorithm = .sha512
            default: return nil
            }
            var value = parts[1].prefix { $0 != ";" }
            if isStructured {
                guard value.count > 2, value.first == ":", value.last == ":" else { return nil }
                value = value.dropFirst().dropLast()
            }
            guard let bytes = Data(base64Encoded: String(value)), bytes.count == algorithm.length else { return nil }
            return FileDigest(algorithm: algorithm, bytes: bytes)
        }
    }
}
