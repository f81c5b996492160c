/// An error for a condition that did not hold before its time limit.
package struct TimedOut: Error, CustomStringConvertible {
    package let what: String
    package let limit: Duration

    package init(what: String, limit: Duration) {
        self.what = what
        self.limit = limit
    }

    package var description: String { "\(what): not within \(limit)" }
}

/// Calls `probe` repeatedly until it returns a value.
///
/// Use it only for what can be observed solely from outside, such as another process, never for state of this program.
///
/// - Throws: ``TimedOut`` after `limit`, or the error of `probe`.
package func eventually<Answer>(
    have what: String, within limit: Duration = .seconds(120), every pause: Duration = .milliseconds(20),
    isolation: isolated (any Actor)? = #isolation,
    _ probe: () async throws -> Answer?
) async throws -> Answer {
    let deadline = ContinuousClock.now + limit
    while true {
        if let answer = try await probe() { return answer }
        guard ContinuousClock.now < deadline else { throw TimedOut(what: what, limit: limit) }
        try await Task.sleep(for: pause)
    }
}

/// Calls `condition` repeatedly until it holds; see ``eventually(have:within:every:isolation:_:)``.
package func eventually(
    that what: String, within limit: Duration = .seconds(120), every pause: Duration = .milliseconds(20),
    isolation: isolated (any Actor)? = #isolation,
    _ condition: () async throws -> Bool
) async throws {
    _ = try await eventually(have: what, within: limit, every: pause) { try await condition() ? true : nil }
}
