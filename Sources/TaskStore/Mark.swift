/// Short numbers in place of long texts, for the indexes that are read all the time: FNV-1a over the texts' bytes.
///
/// Two texts may share a mark. Whoever needs to be certain compares the texts.
package enum Mark {
    /// Of a host: scheme, name and port.
    package static func ofHost(_ host: String) -> Int64 {
        var hash = Hash()
        hash.add(host)
        return Int64(bitPattern: hash.value)
    }

    /// Of what names an entry of a queue file that has no key.
    static func ofEntry(kind: String, url: String, urlMark: Int64?, output: String?) -> Int64 {
        var hash = Hash()
        hash.add(kind)
        hash.add(url)
        hash.add(urlMark.map { String($0) } ?? "")
        hash.add(output ?? "")
        return Int64(bitPattern: hash.value)
    }

    /// Of a URL with its secrets, folded to 32 bits: enough to tell the entries of one file apart, too little to find a
    /// secret by, since the mark outlives the secret that it was made from.
    ///
    /// - Parameter identity: the store's, which salts the mark.
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

        /// With an end: `ab` and `c` are not `a` and `bc`.
        mutating func add(_ text: String) {
            addBytes(text)
            value = (value ^ 0xFF) &* 0x100_0000_01B3
        }
    }
}
