import Glibc
public import TaskModel

extension DLDClient {
    /// Delivers what happened to the app's tasks while it was away, then calls a handler: the counterpart of
    /// `SessionManager.backgroundCompletionHandler` for tasks that outlive the app.
    ///
    /// The place in the journal is kept in the user's state directory, and moves on after each event that `deliver` has
    /// handled. An event is delivered once, unless the process dies between the end of `deliver` and the storing of the
    /// place. Events that happen meanwhile are delivered too. Events that the app has handled by other means are
    /// delivered unless it calls ``acknowledgeEvents(through:identifier:)``.
    ///
    /// - Parameters:
    ///   - identifier: the name of the app; `nil` for ``identifier``.
    ///   - types: the types of events to deliver.
    ///   - deliver: handles an event.
    ///   - completionHandler: called once, when every event is handled.
    /// - Returns: the number of events that were delivered.
    /// - Throws: ``ClientError``, among others ``ClientError/busyIdentifier(_:)`` while another process delivers the
    ///   events; the errors of `deliver`, whose event is then delivered again the next time.
    @discardableResult
    public func handleEventsForBackgroundSession(
        identifier: String? = nil, types: Set<TaskEvent.Kind> = [.completed, .failed, .cancelled, .batchFinished],
        deliver: @Sendable (QueueEvent) async throws -> Void = { _ in }, completionHandler: @Sendable () -> Void
    ) async throws -> Int {
        guard let identifier = identifier ?? self.identifier else { throw ClientError.unusableIdentifier("") }
        let place = try BackgroundPlace(identifier: identifier)
        let filter = EventFilter(types: types, batch: identifier, owner: geteuid())
        var count = 0
        // The place is read after the lock was taken: until then another process may move it on.
        guard let lock = try place.lock() else { throw ClientError.busyIdentifier(identifier) }
        defer { withExtendedLifetime(lock) {} }
        guard var cursor = try place.load() else {
            // The app has not been connected under this name before, so nothing can have happened.
            completionHandler()
            return 0
        }
        var isAtEnd = false
        while !isAtEnd {
            let page = try await page(of: filter, after: cursor)
            for event in page.events {
                try Task.checkCancellation()
                let next = EventCursor(journal: page.journal, sequence: event.sequence)
                if event.type != .gap {
                    try await deliver(QueueEvent(event, cursor: next))
                    count += 1
                }
                cursor = next
                try place.store(cursor)
            }
            isAtEnd = page.next == nil
            let end = EventCursor(journal: page.journal, sequence: page.next ?? page.last)
            // Within a journal the place only moves on.
            guard end.journal != cursor.journal || end.sequence > cursor.sequence else { continue }
            if isAtEnd { try place.store(end) }
            cursor = end
        }
        completionHandler()
        return count
    }

    /// Records that the app has handled all events up to a place, for example those of ``events(after:filter:)``, so that
    /// ``handleEventsForBackgroundSession(identifier:types:deliver:completionHandler:)`` begins after it.
    ///
    /// - Parameters:
    ///   - cursor: the place of the last handled event.
    ///   - identifier: the name of the app; `nil` for ``identifier``.
    /// - Throws: ``ClientError/unusableIdentifier(_:)``, ``ClientError/unusableState(path:errno:)``, or
    ///   ``ClientError/busyIdentifier(_:)`` while another process delivers the events.
    public func acknowledgeEvents(through cursor: EventCursor, identifier: String? = nil) throws(ClientError) {
        guard let identifier = identifier ?? self.identifier else { throw ClientError.unusableIdentifier("") }
        let place = try BackgroundPlace(identifier: identifier)
        guard let lock = try place.lock() else { throw ClientError.busyIdentifier(identifier) }
        defer { withExtendedLifetime(lock) {} }
        let stored = try place.load()
        if let stored, stored.journal == cursor.journal, stored.sequence >= cursor.sequence { return }
        try place.store(cursor)
    }

    private func page(
        of filter: EventFilter, after cursor: EventCursor
    ) async throws(ClientError) -> (events: [TaskEvent], next: Int64?, last: Int64, journal: String) {
        let result = try await calls.run { client throws(ClientError) in
            try client.eventPage(after: cursor.sequence, journal: cursor.journal, filter: filter)
        }
        return (result.events, result.next, result.last, result.journal ?? cursor.journal)
    }
}
