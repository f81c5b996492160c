/// The steps of an ``UploadPlan`` as steps with the server, and their ends as its events.
extension UploadPlan.Step {
    /// The names on the server, and the sizes that a step needs.
    struct Place {
        /// The final name.
        var path: RemotePath
        /// The name of the incomplete file.
        var temporary: RemotePath
        /// The length of the whole file in bytes, if known.
        var length: Int64?
        /// Whether an earlier request may have left a file under the temporary name.
        var mayHaveRemains = false
    }

    /// Returns the step with the server; `nil` if the upload ends.
    func remoteStep(_ place: Place) -> RemoteStep? {
        let (path, temporary) = (place.path, place.temporary)
        let removal = temporary.removal(mayFail: true)
        switch self {
        case .measureRest, .measureWhole: return RemoteStep(work: .look, path: temporary)
        case .compareRemains(let offset): return RemoteStep(work: .fetch(from: offset), path: temporary)
        case .storeAside(from: 0):
            // Remove the old file instead of overwriting it: an interrupted earlier attempt may still be writing to it.
            return RemoteStep(
                work: .store(length: place.length, from: 0), path: temporary,
                commandsBefore: place.mayHaveRemains ? [removal] : [],
                commandsAfter: temporary.sizeQuestion + temporary.renaming(to: path))
        case .storeAside(let offset):
            return RemoteStep(work: .store(length: place.length, from: offset), path: temporary)
        case .makeDirectories: return RemoteStep(work: .command, commandsBefore: path.directoryCreations)
        case .rename: return RemoteStep(work: .command, commandsBefore: temporary.renaming(to: path))
        case .replace:
            return RemoteStep(
                work: .command,
                commandsBefore: [path.removal(mayFail: path.scheme.isFTP)] + temporary.renaming(to: path))
        case .storeDirectly:
            return RemoteStep(
                work: .store(length: place.length, from: 0), path: path, commandsBefore: [removal],
                commandsAfter: path.sizeQuestion)
        case .cleanUp: return RemoteStep(work: .command, commandsBefore: [removal], isCleanUp: true)
        case .finish, .fail: return nil
        }
    }
}

extension UploadPlan.Event {
    /// The comparison of what an earlier attempt left on the server.
    enum Comparison: Equatable {
        /// The bytes are equal up to this offset.
        case equal(upTo: Int64)
        case different

        /// The size of the file on the server in bytes; `nil` if its bytes differ.
        var size: Int64? { if case .equal(let size) = self { size } else { nil } }
    }

    /// Creates the event of a step's end.
    ///
    /// - Parameters:
    ///   - isSentWhole: whether all bytes of the file were sent.
    ///   - comparison: the result of the latest comparison.
    init(_ ending: RemoteEnding, of step: UploadPlan.Step, isSentWhole: Bool, comparison: Comparison) {
        switch (step, ending.error) {
        case (.measureRest, nil), (.measureWhole, nil): self = .measured(ending.facts.size)
        case (.measureRest, let error?) where error.code == .notFound,
            (.measureWhole, let error?) where error.code == .notFound:
            self = .measured(nil)
        case (.compareRemains, let error) where error == nil || comparison == .different:
            self = .compared(size: comparison.size)
        case (_, nil) where step.isStoring && !isSentWhole:
            self = .failed(
                TransferError(.truncated, "the server ended the transfer before it had the whole file"), begun: true)
        case (_, nil): self = .done
        case (_, _) where ending.isCommandRefused: self = .commandRefused
        // An SFTP server says that the file it is to create is not there: its directory is missing.
        case (.storeAside(from: 0), let error?) where error.code == .notFound && !ending.bodyBegun:
            self = .nameRefused(error)
        case (_, let error?) where ending.isNameRefused: self = .nameRefused(error)
        case (_, let error?): self = .failed(error, begun: ending.bodyBegun || !step.isStoring)
        }
    }
}
