/// The shares of users in a limited resource. No user may hold more than the limit per user, and a reserve is kept for
/// users who hold little.
///
/// A value without I/O.
struct ResourceQuota {
    /// The most that one user may hold.
    let perUser: Int
    /// The most that all users together may hold.
    let total: Int
    /// The part of `total` reserved for users who hold no more than `little`.
    let reserve: Int
    let little: Int
    /// The largest amount that a user may take beyond `perUser`, up to `little` in total. A client that leaves long
    /// responses unread can then still query the status.
    let small: Int

    private var held: [UInt32: Int] = [:]
    /// The amount that all users hold together.
    private(set) var used = 0

    init(perUser: Int, total: Int, reserve: Int, little: Int, small: Int = 0) {
        self.perUser = perUser
        self.total = total
        self.reserve = reserve
        self.little = little
        self.small = small
    }

    enum Verdict {
        case yes
        /// The user holds too much; other users are not affected.
        case userHasTooMuch
        /// All users together hold too much.
        case full
    }

    func mayAdd(_ amount: Int, _ user: UInt32) -> Verdict {
        let own = held[user, default: 0]
        // A user who holds nothing may always take as much as one request of the largest kind needs.
        if own > 0, own + amount > perUser + (amount <= small ? little : 0) { return .userHasTooMuch }
        return used + amount <= (own + amount <= little ? total : total - reserve) ? .yes : .full
    }

    /// Takes an amount, even beyond the limits. A response that is longer than estimated already exists.
    mutating func add(_ amount: Int, _ user: UInt32) {
        guard amount > 0 else { return }
        held[user, default: 0] += amount
        used += amount
    }

    mutating func subtract(_ amount: Int, _ user: UInt32) {
        guard amount > 0 else { return }
        let left = held[user, default: 0] - amount
        held[user] = left > 0 ? left : nil
        used -= amount
    }
}
