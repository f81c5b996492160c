/// How a file gets onto a file server: into a temporary name, which becomes the final one when all is there; straight
/// under the final name where the server lets it go no other way.
struct UploadPlan {
    enum Step: Equatable {
        /// Send the file under the temporary name, then give it the final one.
        case storeAside
        /// The final name is taken, or cannot be had in one step: remove what has it, then rename.
        case replace
        /// Send the file under the final name: who looks there meanwhile sees a part of it. Whatever lies under the
        /// temporary name is removed first.
        case storeDirectly
        /// Remove what lies under the temporary name, then fail.
        case cleanUp(TransferError)
        case finish
        case fail(TransferError)
    }

    enum Event {
        case done
        /// The server did not carry out a command after the transfer.
        case commandRefused
        /// The server did not even begin to take the file.
        case nameRefused(TransferError)
        /// - Parameter begun: something may lie on the server.
        case failed(TransferError, begun: Bool)
    }

    private(set) var step = Step.storeAside

    mutating func next(_ event: Event) -> Step {
        step =
            switch (step, event) {
            case (.cleanUp(let error), _): .fail(error)
            case (.fail(let error), _): .fail(error)
            case (_, .done): .finish
            case (.storeAside, .commandRefused): .replace
            case (.storeAside, .nameRefused): .storeDirectly
            // The final name may be free now, and the file is here still: send it once more.
            case (.replace, .commandRefused), (.replace, .nameRefused): .storeDirectly
            case (.storeDirectly, .commandRefused):
                .fail(TransferError(.permissionDenied, "the server does not take the file"))
            case (.storeDirectly, .nameRefused(let error)), (.storeDirectly, .failed(let error, _)): .fail(error)
            case (.finish, .failed(let error, _)): .fail(error)
            case (_, .failed(let error, let begun)): begun ? .cleanUp(error) : .fail(error)
            case (.finish, _): .finish
            }
        return step
    }
}
