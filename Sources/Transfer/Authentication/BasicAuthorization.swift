import FoundationEssentials

/// The Basic scheme (RFC 7617).
public enum BasicAuthorization {
    /// The value of an `Authorization` or `Proxy-Authorization` field; user and password go out as UTF-8.
    ///
    /// - Returns: `nil` where the scheme cannot carry the credential: a colon in the user's name, a control character
    ///   in the name or the password (section 2).
    public static func fieldValue(for credential: Credential) -> String? {
        guard !credential.user.utf8.contains(UInt8(ascii: ":")), !credential.user.containsControlCharacter,
            !credential.password.containsControlCharacter
        else { return nil }
        return "Basic " + Data("\(credential.user):\(credential.password)".utf8).base64EncodedString()
    }
}

extension String {
    /// Whether there is one of C0 or C1, or a delete: none of them belongs into a field.
    var containsControlCharacter: Bool { unicodeScalars.contains { $0.properties.generalCategory == .control } }
}
