import Synchronization

/// Bytes a second that one host's transfers may come to together, in each direction.
public struct TransferRates: Sendable, Equatable {
    /// Of what comes; `nil`: any number.
    public var download: Int64?
    /// Of what goes; `nil`: any number.
    public var upload: Int64?

    /// No limit where nothing is said.
    public init(download: Int64? = nil, upload: Int64? = nil) {
        self.download = download
        self.upload = upload
    }
}

/// The limits of a session by host; a host is scheme, name and port.
final class HostRates: Sendable {
    /// What all that goes to and comes from one host passes.
    final class Limiters: Sendable {
        let download: RateLimiter
        let upload: RateLimiter

        init(_ rates: TransferRates) {
            download = RateLimiter(rate: rates.download)
            upload = RateLimiter(rate: rates.upload)
        }
    }

    private struct Weak {
        weak var limiters: Limiters?
    }

    private struct State {
        var table: HostTable<TransferRates>
        /// Of hosts that are spoken to.
        var limiters: [String: Weak] = [:]
        /// So many entries before those are dropped that nobody uses.
        var sweepAt = 64
    }

    private let state: Mutex<State>
    /// Changes with the table.
    private let edition: Atomic<Int>

    init(_ table: HostTable<TransferRates>) {
        state = Mutex(State(table: table))
        // Where no host has a limit, nobody needs to look.
        edition = Atomic(table.isEmpty ? 0 : 1)
    }

    /// Tells whether ``limiters(of:)`` would say something else than before; 0 for as long as there never was a limit.
    var currentEdition: Int { edition.load(ordering: .relaxed) }

    var table: HostTable<TransferRates> {
        get { state.withLock { $0.table } }
        set {
            state.withLock { state in
                guard state.table != newValue else { return }
                state.table = newValue
                for (origin, entry) in state.limiters {
                    let rates = newValue.value(forOrigin: origin) ?? TransferRates()
                    entry.limiters?.download.rate = rates.download
                    entry.limiters?.upload.rate = rates.upload
                }
                edition.wrappingAdd(1, ordering: .relaxed)
            }
        }
    }

    /// - Parameter origin: `scheme://name:port`.
    /// - Returns: `nil` where the host has no limit.
    func limiters(of origin: String) -> Limiters? {
        state.withLock { state in
            if let known = state.limiters[origin]?.limiters { return known }
            guard let rates = state.table.value(forOrigin: origin) else { return nil }
            if state.limiters.count >= state.sweepAt {
                state.limiters = state.limiters.filter { $0.value.limiters != nil }
                state.sweepAt = max(64, state.limiters.count * 2)
            }
            let limiters = Limiters(rates)
            state.limiters[origin] = Weak(limiters: limiters)
            return limiters
        }
    }
}
