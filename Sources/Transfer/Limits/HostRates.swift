import Synchronization

/// The rate limits of all transfers with one host together, in bytes per second for each direction.
public struct TransferRates: Sendable, Equatable {
    /// The download limit; `nil` for none.
    public var download: Int64?
    /// The upload limit; `nil` for none.
    public var upload: Int64?

    /// Creates rates. There is no limit by default.
    public init(download: Int64? = nil, upload: Int64? = nil) {
        self.download = download
        self.upload = upload
    }
}

/// The rate limits of a session by host. A host is scheme, name and port.
final class HostRates: Sendable {
    /// The rate limiters for all transfers with one host.
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
        /// The limiters of hosts in use.
        var limiters: [String: Weak] = [:]
        /// The number of entries at which unused ones are removed.
        var sweepAt = 64
    }

    private let state: Mutex<State>
    /// A counter that changes with the table.
    private let edition: Atomic<Int>

    init(_ table: HostTable<TransferRates>) {
        state = Mutex(State(table: table))
        // If no host has a limit, callers need no look-up.
        edition = Atomic(table.isEmpty ? 0 : 1)
    }

    /// The edition of the table. If it is unchanged, ``limiters(of:)`` returns the same result; 0 means that there has
    /// never been a limit.
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

    /// Returns the limiters of a host.
    ///
    /// - Parameter origin: `scheme://name:port`.
    /// - Returns: `nil` if the host has no limit.
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
