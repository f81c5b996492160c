/// How a file gets onto a file server: into a temporary name, which becomes the final one when all is there; straight
/// under the final name where the server lets it go no other way.
///
/// What an earlier attempt left under the temporary name is measured first, and its end compared; then the rest goes
/// behind it. Since the server puts what it is sent at the end that it sees, the whole is measured again before it is
/// renamed.
struct UploadPlan {
    /// Bytes at the end of what is there that are fetched and compared before others go behind them.
    static let overlap: Int64 = 256 * 1024

    enum Step: Equatable {
        /// Ask how much an earlier attempt left.
        case measureRest
        /// Fetch what is there from this offset on, and compare it.
        case compareRest(from: Int64)
        /// Send the file under the temporary name, from this offset on; from the beginning, then give it the final name.
        case storeAside(from: Int64)
        /// Ask how much is there now.
        case measureWhole
        /// Give the file its final name.
        case rename
        /// The final name is taken, or cannot be had in one step: remove what has it, then rename.
        case replace
        /// Send the file under the final name: who looks there meanwhile sees a part of it. Whatever lies under the
        /// temporary name is removed first.
        case storeDirectly
        /// Remove what lies under the temporary name, then fail.
        case cleanUp(TransferError)
        case finish
        /// - Parameter leavesRest: what is under the temporary name is for the next attempt.
        case fail(TransferError, leavesRest: Bool)

        var isStoring: Bool {
            switch self {
            case .storeAside, .storeDirectly: true
            default: false
            }
        }
    }

    enum Event {
        case done
        /// So many bytes lie under the temporary name; `nil`: none are to be had.
        case measured(Int64?)
        /// - Parameter size: of the rest that is compared; `nil`: it is another.
        case compared(size: Int64?)
        /// The server did not carry out a command after the transfer.
        case commandRefused
        /// The server did not even begin to take the file.
        case nameRefused(TransferError)
        /// - Parameter begun: something may lie on the server.
        case failed(TransferError, begun: Bool)
    }

    private(set) var step: Step
    /// Bytes of the whole file, where known.
    private let length: Int64?
    /// There may be another attempt, which can go on with what is there.
    var mayLeaveRest = false

    init(length: Int64? = nil, hasRest: Bool = false) {
        self.length = length
        step = hasRest ? .measureRest : .storeAside(from: 0)
    }

    mutating func next(_ event: Event) -> Step {
        step =
            switch (step, event) {
            case (.cleanUp(let error), _): .fail(error, leavesRest: false)
            case (.fail, _), (.finish, _): step
            case (.measureRest, .measured(let size)), (.compareRest, .compared(let size)): rest(size)
            case (.measureRest, .nameRefused), (.compareRest, .nameRefused): .storeAside(from: 0)
            case (.measureWhole, .measured(let size)): size == length ? .rename : .storeAside(from: 0)
            case (.storeAside(let offset), .done): offset > 0 ? .measureWhole : .finish
            case (_, .done): .finish
            case (.storeAside(from: 0), .nameRefused): .storeDirectly
            // What is there may not be added to.
            case (.storeAside, .nameRefused): .storeAside(from: 0)
            case (.storeAside, .commandRefused), (.rename, .commandRefused), (.rename, .nameRefused): .replace
            // The final name may be free now, and the file is here still: send it once more.
            case (.replace, .commandRefused), (.replace, .nameRefused): .storeDirectly
            case (.storeDirectly, .commandRefused):
                .fail(TransferError(.permissionDenied, "the server does not take the file"), leavesRest: false)
            case (.storeDirectly, .nameRefused(let error)), (.storeDirectly, .failed(let error, _)):
                .fail(error, leavesRest: false)
            // Whatever had the name may be gone already: what lies aside is all there is, and nobody takes it away.
            case (.replace, .failed(let error, _)): .fail(error, leavesRest: false)
            case (_, .failed(let error, let begun)): failed(error, begun: begun)
            case (_, .measured), (_, .compared), (_, .commandRefused), (_, .nameRefused):
                .fail(TransferError(.internal, "an upload lost its way"), leavesRest: false)
            }
        return step
    }

    private func rest(_ size: Int64?) -> Step {
        guard let size, let length, size > 0, size < length else { return .storeAside(from: 0) }
        if case .compareRest = step { return .storeAside(from: size) }
        return .compareRest(from: max(0, size - Self.overlap))
    }

    private func failed(_ error: TransferError, begun: Bool) -> Step {
        if mayLeaveRest, error.code != .cancelled, error.code != .sourceChanged {
            return .fail(error, leavesRest: begun || step == .measureRest)
        }
        return begun ? .cleanUp(error) : .fail(error, leavesRest: false)
    }
}
