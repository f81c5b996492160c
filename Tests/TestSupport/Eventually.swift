/// Something that was awaited from outside and did not come in time.
package struct TimedOut: Error, CustomStringConvertible {
    package let what: String
    package let limit: Duration

    package init(what: String, limit: Duration) {
        self.what = what
        self.limit = limit
    }

    package var description: String { "\(what): not within \(limit)" }
}

/// Asks `probe` again and again until it has an answer.
///
/// For what can only be observed from outside, such as another process; never for our own code's state.
///
/// - Throws: ``TimedOut`` past `limit`, or what `probe` throws.
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

/// Asks `condition` again and again until it holds; see ``eventually(have:within:every:isolation:_:)``.
package func eventually(
    that what: String, within limit: Duration = .seconds(120), every pause: Duration = .milliseconds(20),
    isolation: isolated (any Actor)? = #isolation,
    _ condition: () async throws -> Bool
) async throws {
    _ = try await eventually(have: what, within: limit, every: pause) { try await condition() ? true : nil }
}
