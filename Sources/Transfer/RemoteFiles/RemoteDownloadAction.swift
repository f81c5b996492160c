/// An action that ``RemoteDownloadStateMachine`` wants performed. Its performer, ``RemoteDownloadRun``, does nothing
/// else.
enum RemoteDownloadAction {
    case none
    /// Learns whether a digest of the whole file is known; ``RemoteDownloadStateMachine/prepared(_:)`` or
    /// ``RemoteDownloadStateMachine/failed(_:)`` follows.
    case learnDigest
    /// Determines where a download of the version with these facts resumes;
    /// ``RemoteDownloadStateMachine/offsetFound(_:)`` or ``RemoteDownloadStateMachine/failed(_:)`` follows.
    case findOffset(RemoteFacts)
    /// Requests the file from an offset on. With a reason, the part is dropped first.
    case request(from: Int64, startingOver: String?)
    /// Begins the file although no byte came, and reports the end of its bytes.
    case beginEmpty(RemoteBodyPlan, RemoteEnding)
    /// Checks that the overlap was compared whole; ``RemoteDownloadStateMachine/bytesEnded(_:at:)`` or
    /// ``RemoteDownloadStateMachine/failed(_:)`` follows.
    case endBytes(RemoteEnding)
    /// Writes what is gathered, and requests the file's facts once more.
    case confirm
    /// Requests the path as a directory.
    case checkDirectory
    /// Aborts the exchange with this error; ``RemoteDownloadStateMachine/stepEnded(_:_:at:)`` follows.
    case abort(TransferError)
    /// Writes what is gathered, and has the request's mirrors go on.
    case switchToMirrors(TransferError)
    /// Completes the file.
    case complete
    /// Ends the download.
    case fail(TransferError)
}

/// The place of a file server's bytes in the file.
struct RemoteBodyPlan: Equatable {
    /// The position of the first byte in the file.
    var offset: Int64
    var facts: RemoteFacts
    /// Whether the part is marked to hold bytes of several sources.
    var isJoining: Bool
}

/// The decision on bytes of a file.
enum RemoteFileBytesAction {
    /// The file begins with them.
    case begin
    /// They continue the file.
    case append
    case refuse(TransferError)
}
