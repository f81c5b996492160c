import Curl

/// The wait of a request for its turn at its host; see ``RequestPacer``. Released, it gives up the turn.
///
/// Used on the loop's thread only.
final class RequestTurn {
    private unowned let core: LoopCore
    private let progress: TransferProgress
    private let go: () -> Void
    private let began = MonotonicTime.now()
    private var ticket: RequestPacer.Ticket?
    private var timer: Int?

    /// The microseconds since the beginning of the wait.
    var waited: Int64 { Int64(clamping: (MonotonicTime.now().nanoseconds - began.nanoseconds) / 1_000) }

    /// Returns the wait of a request.
    ///
    /// - Parameters:
    ///   - origin: `scheme://name:port`.
    ///   - isFurther: whether the request is for a further connection of a download.
    ///   - go: called once, when the request may be sent. The caller then releases the wait.
    /// - Returns: `nil` if the request may be sent now.
    static func wait(
        at origin: @autoclosure () -> String, isFurther: Bool, of task: any LoopTask, on core: LoopCore,
        go: @escaping () -> Void
    ) -> RequestTurn? {
        let pacer = task.session.resources.requestPacer
        guard pacer.mayLimit else { return nil }
        let turn = RequestTurn(task, core, go)
        let reference = LoopReference(turn, on: core)
        let loop = Int(bitPattern: ObjectIdentifier(core))
        let entry = pacer.enter(origin(), isFurther: isFurther, loop: loop, now: turn.began) {
            reference.perform { $0.look() }
        }
        guard let (ticket, step) = entry else { return nil }
        turn.ticket = ticket
        task.progress.addAwaitedTurns(1)
        if case .wait(let milliseconds) = step { turn.setTimer(milliseconds) }
        return turn
    }

    private init(_ task: any LoopTask, _ core: LoopCore, _ go: @escaping () -> Void) {
        self.core = core
        progress = task.progress
        self.go = go
    }

    deinit {
        // The loop may be gone, and its timer finds nothing.
        if ticket != nil { progress.addAwaitedTurns(-1) }
    }

    /// Gives up the turn.
    func stop() {
        guard ticket != nil else { return }
        ticket = nil
        progress.addAwaitedTurns(-1)
        if let timer { core.cancelTimer(timer) }
        timer = nil
    }

    private func look() {
        guard let ticket else { return }
        switch ticket.look(now: .now()) {
        case .send:
            stop()
            go()
        case .wait(let milliseconds): setTimer(milliseconds)
        case .queue: break
        }
    }

    private func setTimer(_ milliseconds: Int64) {
        if let timer { core.cancelTimer(timer) }
        timer = core.after(milliseconds: milliseconds) { [weak self] in
            self?.timer = nil
            self?.look()
        }
    }
}
