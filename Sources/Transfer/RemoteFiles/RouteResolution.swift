import Curl

/// The resolution of the names on a run's way to its server, one after the other and within the connect timeout.
///
/// Used on the loop's thread only.
final class RouteResolution {
    /// The parameters of a resolution.
    struct Plan {
        var route: RouteLookup
        var request: TransferRequest
        /// The host of the request's URL.
        var server: String
        /// The time from which the connect timeout counts.
        var begunAt: MonotonicTime
    }

    /// The route, with the addresses found so far.
    private(set) var route: RouteLookup
    /// The time from the beginning to the last reply, in microseconds; `nil` if all addresses were known.
    private(set) var duration: Int64?
    private let plan: Plan
    private let task: any LoopTask
    private unowned let core: LoopCore
    /// The number of the resolution within its run, by which replies to earlier ones are recognised and ignored.
    private let number: Int
    private let finished: (Result<RouteLookup, TransferError>) -> Void
    /// The pending query to the resolver.
    private var question: Resolver.Question?
    private var timer: Int?

    /// Creates a resolution. Its run holds it, and is not held by it.
    ///
    /// - Parameter finished: called once, unless the resolution is stopped before.
    init(
        _ plan: Plan, number: Int, task: any LoopTask, core: LoopCore,
        finished: @escaping (Result<RouteLookup, TransferError>) -> Void
    ) {
        self.plan = plan
        self.number = number
        self.task = task
        self.core = core
        self.finished = finished
        route = plan.route
    }

    /// Resolves the next name without addresses, or reports the route if there is none.
    func advance() {
        do throws(TransferError) {
            while let host = route.next {
                guard let known = task.session.resolver.cached(host) else { return ask(for: host) }
                try route.found(known)
            }
        } catch {
            return finished(.failure(error))
        }
        finished(.success(route))
    }

    private func ask(for host: String) {
        let (number, session) = (number, task.session)
        let limit =
            session.configuration.connectTimeout(of: plan.request)
            - MonotonicTime.now().milliseconds(since: plan.begunAt)
        timer = core.after(milliseconds: limit) { [weak self] in self?.resolved(host, nil, number) }
        let resolution = LoopReference(self, on: core)
        question = session.resolver.resolve(host, for: Resolver.Asker(plan.request, of: task)) { answer in
            resolution.perform { $0.resolved(host, answer, number) }
        }
    }

    /// Continues after the resolver's reply.
    ///
    /// - Parameter answer: the reply; `nil` after the time-out.
    private func resolved(_ host: String, _ answer: Resolver.Answer?, _ number: Int) {
        guard number == self.number, question != nil else { return }
        stop()
        duration = Int64((MonotonicTime.now().nanoseconds - plan.begunAt.nanoseconds) / 1000)
        switch answer {
        case .success(let addresses):
            do throws(TransferError) {
                try route.found(addresses)
            } catch {
                return finished(.failure(error))
            }
            advance()
        case .failure(let failure):
            finished(.failure(ExchangeLauncher.error(failure, host: host, for: plan.server)))
        case nil: finished(.failure(TransferError(.timedOut, "looking up \(host) took too long")))
        }
    }

    /// Withdraws the pending query.
    func stop() {
        question = nil
        if let timer { core.cancelTimer(timer) }
        timer = nil
    }
}
