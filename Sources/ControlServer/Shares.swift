/// Parts that users have of something that is limited: none takes more than a user may, and a reserve is left to those
/// who hold little.
///
/// A value without I/O.
struct Shares {
    /// The most that one user may hold.
    let perUser: Int
    /// The most that all may hold.
    let total: Int
    /// What of `total` is left to users who hold no more than `little`.
    let reserve: Int
    let little: Int
    /// Amounts up to this one a user may take beyond `perUser`, up to `little` in all: who leaves long answers unread can
    /// still ask how things stand.
    let small: Int

    private var held: [UInt32: Int] = [:]
    /// What all hold together.
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
        /// The user holds too much: nobody else is concerned.
        case userHasTooMuch
        /// All together hold too much.
        case full
    }

    func mayTake(_ amount: Int, _ user: UInt32) -> Verdict {
        let own = held[user, default: 0]
        // Whoever holds nothing may always hold as much as one request of the largest kind takes.
        if own > 0, own + amount > perUser + (amount <= small ? little : 0) { return .userHasTooMuch }
        return used + amount <= (own + amount <= little ? total : total - reserve) ? .yes : .full
    }

    /// Takes it, whether it may be taken or not: an answer that has become longer than was reckoned is there already.
    mutating func take(_ amount: Int, _ user: UInt32) {
        guard amount > 0 else { return }
        held[user, default: 0] += amount
        used += amount
    }

    mutating func give(_ amount: Int, _ user: UInt32) {
        guard amount > 0 else { return }
        let left = held[user, default: 0] - amount
        held[user] = left > 0 ? left : nil
        used -= amount
    }
}
