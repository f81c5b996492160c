import CCurl

/// The public suffixes of host names, such as `co.uk`, under which anybody can register a name.
package enum PublicSuffix {
    /// Returns the length of the public suffix at the end of a host name, in bytes.
    ///
    /// The list is that of libpsl, with which libcurl is linked. It is read once, at the first call. Without a list,
    /// the last label is the suffix.
    ///
    /// - Parameter host: A host name in lower case.
    package static func length(in host: String) -> Int {
        let length = ccurl_public_suffix_length(host)
        guard length < 0 else { return length }
        return host.utf8.reversed().prefix { $0 != UInt8(ascii: ".") }.count
    }
}
