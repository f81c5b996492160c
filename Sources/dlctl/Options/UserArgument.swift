import TaskModel

/// A user as given on the command line, by name or by uid.
enum UserArgument {
    /// Returns the uid of a user.
    ///
    /// - Parameter option: the option, for error messages.
    static func uid(_ text: String, option: String) throws(Failure) -> UInt32 {
        if !text.isEmpty, text.utf8.allSatisfy(\.isDigit) {
            guard let uid = UInt32(text) else {
                throw .usage("\(option): \"\(text)\" is too large for a uid", field: option)
            }
            return uid
        }
        // A NUL would end the name early; no argument can contain one otherwise.
        guard !text.isEmpty, !text.utf8.contains(0) else {
            throw .usage("\(option): is empty; give the name or the uid of a user", field: option)
        }
        switch Accounts.uid(named: text) {
        case .uid(let uid): return uid
        case .unknown: throw .usage("\(option): there is no user \"\(text)\"; give a name or a uid", field: option)
        case .failed(let code):
            throw .usage(
                "\(option): the user \"\(text)\" cannot be looked up: \(SystemText.error(code)); give the uid",
                field: option)
        }
    }
}
