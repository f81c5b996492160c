/// A state machine for an upload to a file server. The file is written under a temporary name and renamed when it is
/// complete. It is written directly under the final name only if the server permits nothing else.
///
/// If an earlier attempt left a temporary file, its size is requested and its end compared. The remaining bytes are
/// then appended. The server appends at the end of the file as it sees it, so the size is checked again before the
/// rename.
struct UploadPlan {
    /// The number of bytes at the end of the temporary file that are fetched and compared before more are appended.
    static let overlap: Int64 = 256 * 1024

    enum Step: Equatable {
        /// A request for the size of an earlier attempt's temporary file.
        case measureRest
        /// A fetch of the temporary file from this offset on, for comparison.
        case compareRemains(from: Int64)
        /// A transfer of the file to the temporary name, from this offset on. If the offset is 0, the rename to the
        /// final name is part of the step.
        case storeAside(from: Int64)
        /// The creation of the directories on the way to the file, those that exist excepted.
        case makeDirectories
        /// A request for the current size of the temporary file.
        case measureWhole
        /// The rename of the temporary file to the final name.
        case rename
        /// The removal of the file with the final name, followed by the rename. The step applies if the final name is
        /// taken or if the server cannot replace a file in one step.
        case replace
        /// A transfer of the file to the final name, where a partial file is visible meanwhile. A temporary file is
        /// removed first.
        case storeDirectly
        /// The removal of the temporary file, followed by a failure.
        case cleanUp(TransferError)
        case finish
        /// The failure of the upload.
        ///
        /// - Parameter leavesRemains: Whether the temporary file is kept for the next attempt.
        case fail(TransferError, leavesRemains: Bool)

        var isStoring: Bool {
            switch self {
            case .storeAside, .storeDirectly: true
            default: false
            }
        }
    }

    enum Event {
        case done
        /// The size of the temporary file in bytes; `nil` if the file does not exist or its size is unknown.
        case measured(Int64?)
        /// The comparison of the temporary file is complete.
        ///
        /// - Parameter size: The size of the temporary file in bytes; `nil` if its bytes differ.
        case compared(size: Int64?)
        /// The server refused a command after the transfer.
        case commandRefused
        /// The server refused the file before the transfer began.
        case nameRefused(TransferError)
        /// The attempt failed.
        ///
        /// - Parameter begun: Whether a temporary file may exist on the server.
        case failed(TransferError, begun: Bool)
    }

    private(set) var step: Step
    /// The length of the whole file in bytes, if known.
    private let length: Int64?
    /// Whether directories are created if the server refuses the temporary file; at most once.
    private var mayMakeDirectories: Bool
    /// Whether a further attempt may continue from the temporary file.
    var mayLeaveRemains = false

    init(length: Int64? = nil, hasRemains: Bool = false, mayMakeDirectories: Bool = false) {
        self.length = length
        self.mayMakeDirectories = mayMakeDirectories
        step = hasRemains ? .measureRest : .storeAside(from: 0)
    }

    mutating func next(_ event: Event) -> Step {
        step =
            switch (step, event) {
            case (.cleanUp(let error), _): .fail(error, leavesRemains: false)
            case (.fail, _), (.finish, _): step
            case (.measureRest, .measured(let size)), (.compareRemains, .compared(let size)): rest(size)
            case (.measureRest, .nameRefused), (.compareRemains, .nameRefused): .storeAside(from: 0)
            case (.measureWhole, .measured(let size)): size == length ? .rename : .storeAside(from: 0)
            case (.makeDirectories, .done), (.makeDirectories, .commandRefused): .storeAside(from: 0)
            case (.storeAside(let offset), .done): offset > 0 ? .measureWhole : .finish
            case (_, .done): .finish
            case (.storeAside(from: 0), .nameRefused) where mayMakeDirectories: .makeDirectories
            case (.storeAside(from: 0), .nameRefused): .storeDirectly
            // The server does not allow appending to the temporary file.
            case (.storeAside, .nameRefused): .storeAside(from: 0)
            case (.storeAside, .commandRefused), (.rename, .commandRefused), (.rename, .nameRefused): .replace
            // The final name may be free now. The source file still exists, so it is sent once more.
            case (.replace, .commandRefused), (.replace, .nameRefused): .storeDirectly
            case (.storeDirectly, .commandRefused):
                .fail(TransferError(.permissionDenied, "the server does not accept the file"), leavesRemains: false)
            case (.storeDirectly, .nameRefused(let error)), (.storeDirectly, .failed(let error, _)):
                .fail(error, leavesRemains: false)
            // The previous file may already be removed. The temporary file is then the only copy on the server, so it
            // is kept.
            case (.replace, .failed(let error, _)): .fail(error, leavesRemains: false)
            case (_, .failed(let error, let begun)): failed(error, begun: begun)
            case (_, .measured), (_, .compared), (_, .commandRefused), (_, .nameRefused):
                .fail(TransferError(.internal, "an upload reached an invalid state"), leavesRemains: false)
            }
        if step == .makeDirectories { mayMakeDirectories = false }
        return step
    }

    private func rest(_ size: Int64?) -> Step {
        guard let size, let length, size > 0, size < length else { return .storeAside(from: 0) }
        if case .compareRemains = step { return .storeAside(from: size) }
        return .compareRemains(from: max(0, size - Self.overlap))
    }

    private func failed(_ error: TransferError, begun: Bool) -> Step {
        if mayLeaveRemains, error.code != .cancelled, error.code != .sourceChanged {
            return .fail(error, leavesRemains: begun || step == .measureRest)
        }
        return begun ? .cleanUp(error) : .fail(error, leavesRemains: false)
    }
}
