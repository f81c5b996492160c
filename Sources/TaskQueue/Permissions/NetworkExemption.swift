/// The owners to whom the denied networks do not apply.
package enum NetworkExemption: Sendable {
    case none
    /// Root, and the users of whom `isMember` returns true. It is called at each attempt of a task and may wait for a
    /// lookup.
    case administrators(isMember: @Sendable (_ uid: UInt32) -> Bool)

    /// Returns whether the tasks of a user are exempt.
    func includes(_ uid: UInt32) -> Bool {
        switch self {
        case .none: false
        case .administrators(let isMember): uid == 0 || isMember(uid)
        }
    }

    /// Whether what the administrator configured is exempt, such as webhooks.
    var includesConfiguration: Bool { if case .administrators = self { true } else { false } }
}
