/// Short numbers that replace long texts in frequently read indexes: FNV-1a hashes of the texts' bytes.
///
/// Two texts may have the same fingerprint. A caller that needs certainty must compare the texts.
package enum Fingerprint {
    /// Returns the fingerprint of a host: scheme, name and port.
    package static func ofHost(_ host: String) -> Int64 {
        var hash = Hash()
        hash.add(host)
        return Int64(bitPattern: hash.value)
    }

    /// Returns the fingerprint of the fields that identify an entry of a queue file without a key.
    static func ofEntry(kind: String, url: String, urlFingerprint: Int64?, output: String?) -> Int64 {
        var hash = Hash()
        hash.add(kind)
        hash.add(url)
        hash.add(urlFingerprint.map { String($0) } ?? "")
        hash.add(output ?? "")
        return Int64(bitPattern: hash.value)
    }

    /// Returns the fingerprint of a URL that contains secrets, folded to 32 bits. This is enough to distinguish the
    /// entries of one file, but too little to recover a secret; the fingerprint is kept longer than the secret itself.
    ///
    /// - Parameter identity: the store's identity, which serves as a salt.
    static func ofSecretURL(_ url: String, identity: String) -> Int64 {
        var hash = Hash()
        hash.addBytes(identity)
        hash.addBytes(url)
        return Int64((hash.value >> 32) ^ (hash.value & 0xFFFF_FFFF))
    }

    private struct Hash {
        private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

        mutating func addBytes(_ text: String) {
            var (text, value) = (text, value)
            text.withUTF8 { for byte in $0 { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 } }
            self.value = value
        }

        /// Adds a text and a terminator, so that `ab`, `c` and `a`, `bc` have different hashes.
        mutating func add(_ text: String) {
            addBytes(text)
            value = (value ^ 0xFF) &* 0x100_0000_01B3
        }
    }
}
