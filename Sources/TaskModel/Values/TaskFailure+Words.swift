extension TaskFailure {
    /// Whether the file of an upload does not exist.
    package var tellsOfMissingSource: Bool { code == .sourceChanged && message.hasPrefix("there is no file") }

    /// Whether the list named by `checksumURL`, and not the file, was the cause.
    package var isOfChecksumList: Bool { message.hasPrefix("the list of checksums at ") }

    /// Whether the server was given no login and needs one.
    package var tellsOfMissingLogin: Bool { message.contains(" requires a user name and password") }
}

extension TaskID {
    /// Returns how a task gets the login that its server needs.
    ///
    /// - Parameter url: the URL of the task.
    package func loginAdvice(_ url: String) -> String {
        let other =
            url.lowercased().hasPrefix("http")
            ? "or --header 'K: V'"
            : "or a password or key in hosts.NAME.credential of the configuration, or --netrc FILE with a new task"
        return "give a login: dlctl set \(self) --user NAME --password-file FILE (\(other))"
    }
}
