import Transfer

/// The client that makes a request, with its user and permissions.
package struct Caller: Sendable, Equatable {
    package var uid: UInt32
    /// The group ids of the client process, including its primary group.
    package var groups: [UInt32]
    /// Whether the caller can see and change the tasks of all users.
    package var isAdministrator: Bool
    /// The open files that the caller passed over the socket.
    package var files: ReceivedFiles?

    package init(uid: UInt32, groups: [UInt32] = [], isAdministrator: Bool, files: ReceivedFiles? = nil) {
        self.uid = uid
        self.groups = groups
        self.isAdministrator = isAdministrator
        self.files = files
    }

    /// Creates a caller from a system account, for requests that no client process makes.
    package init(account uid: UInt32, isAdministrator: Bool) {
        self.init(uid: uid, groups: AccountNames.groups(of: uid), isAdministrator: isAdministrator)
    }

    var identity: UserIdentity { UserIdentity(uid: uid, groups: groups) }

    /// The uid whose tasks the caller may see; `nil` for the tasks of all users.
    var scope: UInt32? { isAdministrator ? nil : uid }
}
