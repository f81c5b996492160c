/// An action that ``DownloadStateMachine`` wants performed. Its performer, ``DownloadRun``, does nothing else.
indirect enum DownloadAction {
    /// The continuation of an action that first writes what a connection has gathered.
    enum AfterFlush: Equatable {
        /// Chooses the next bytes for the connection.
        case nextClaim
        /// Requests the rest of the claim.
        case requestRest
        /// Requests the claim from this byte on, at once or after a delay.
        case requestOn(from: Int64)
        /// Closes the connection; others go on.
        case closeConnection
        /// Requests from the source's own URL again, without the earlier redirect.
        case requestOwnURL
        /// Continues from another source, because the last connection failed with this error.
        case tryNextSource(TransferError)
        /// Has another source go on with the bytes of the part.
        case switchSource(to: Int)
        /// Has a faster source take the place of the only connection.
        case change(to: Int)
        /// Drops the part for the version of the source that was left because it has another version.
        case beginAnew
    }

    case none
    /// Sends the request for a connection's claim.
    case send(Int)
    /// Writes what a connection has gathered; ``DownloadStateMachine/flushed(_:_:_:)`` or
    /// ``DownloadStateMachine/diskFailed(_:_:_:)`` follows.
    case flush(Int, then: AfterFlush)
    /// Calls ``DownloadStateMachine/delayEnded(_:_:)`` after so many milliseconds.
    case delayRequest(Int, milliseconds: Int64)
    /// Calls ``DownloadStateMachine/waitEnded(_:_:)`` after so many milliseconds.
    case wait(Int, milliseconds: Int64)
    /// Asks the origin's limit for one connection more; ``DownloadStateMachine/limitAnswered(_:isGranted:_:)`` follows.
    case borrow(ConnectionRequest)
    /// Remembers that the origin of a connection serves one connection of a download and lets others wait;
    /// ``DownloadStateMachine/singleServiceRemembered(by:until:)`` follows.
    case rememberSingleService(Int)
    /// Gives back a connection that was borrowed and is not needed.
    case giveBack(Int)
    /// Creates an exchange for a new connection.
    case open(ConnectionRequest)
    /// Checks whether to open more connections, up to this number.
    case grow(to: Int)
    /// Closes a connection; what it borrowed is given back.
    case close(Int)
    /// Closes all connections but one.
    case closeOthers(than: Int)
    /// Creates the exchange of a new connection in the place of another, which is closed. With `isJoining`, the part is
    /// marked to hold bytes of several sources.
    case replace(Int, by: Int, source: Int, isJoining: Bool)
    /// Breaks off the exchange under way; ``DownloadStateMachine/ended(_:_:_:)`` follows.
    case interrupt(Int)
    /// Forgets where redirects led to.
    case requestOwnURL(Int)
    /// Starts the timer of ``DownloadStateMachine/tick(_:_:)``.
    case tick(milliseconds: Int64)
    /// Prepares a connection to request the whole. With a reason, the part is dropped first; otherwise a response has to
    /// show that it may replace the part.
    case restart(Int, dropping: String?)
    /// Completes the file.
    case finish(Int)
    /// Ends the download.
    case fail(TransferError)
    /// Performs actions in their order, as long as none of them ends the download.
    case sequence([DownloadAction])
}

/// A connection that a download would like to have.
struct ConnectionRequest: Equatable {
    /// The purpose of the connection.
    enum Purpose: Equatable {
        /// A connection towards the number that ``ConnectionScaler`` wants.
        case growth(target: Int)
        /// A single one, after a server refused or lost others.
        case single
        /// A source that is expected to be far faster joins those at work.
        case betterSource
    }

    /// The number of the new connection.
    var number: Int
    var source: Int
    /// A connection to the same source, whose redirects and credentials it can use.
    var like: Int?
    /// Any connection of the download.
    var beside: Int
    var purpose: Purpose
}

/// The range that a request asks for (RFC 9110, section 14.2).
enum RangeRequest: Equatable {
    case whole
    /// `Range: bytes=from-last`, with `If-Range` where there is a validator.
    case range(from: Int64, last: Int64?, ifRange: String?)
    /// A range that begins before the end of the part, so that the part's last bytes can be compared. Its start
    /// depends on them: ``DownloadStateMachine/overlapBegins(_:at:)`` follows.
    case overlap(Overlap)
}

/// The decision on a response, once its head is known.
enum HeadAction {
    case discard
    case receive(BodyPlan)
}

/// The place of a response's body in the file.
struct BodyPlan {
    /// The position of its first byte in the file.
    var offset: Int64
    /// The position behind its last byte, as far as the response says.
    var end: Int64?
    /// The size of the whole resource, as far as the response says.
    var total: Int64?
    /// The version that the response claims to be of.
    var claimed: ResourceVersion
    /// Why the bytes of the part are dropped first.
    var startsOver: String?
    /// Whether the bytes of the part behind its first gap are dropped first.
    var keepsFront = false
    /// Whether other connections fetch the file too.
    var isShare = false
    /// The codings that are undone on the way to the file, the outermost first.
    var codings: [BodyDecoder.Coding] = []
}

/// The decision on bytes of a body.
enum BytesAction: Equatable {
    /// Write all of them.
    case append
    /// They reach the end of the claim, and the response goes on: ``DownloadStateMachine/claimReached(_:_:at:_:)``
    /// decides.
    case claimReached
    /// Write the first so many, which fulfil the claim, and break off.
    case fulfil(Int)
    /// Pass over them.
    case ignore
    /// Break off.
    case refuse
    /// Break off, since the body is longer than its head says.
    case fail(TransferError)
}

/// The facts about one exchange that decisions depend on.
struct ExchangeFacts {
    var number: Int
    /// The position of the connection's writer.
    var position: Int64 = 0
    /// Bytes that its writer has gathered and not written.
    var gathered: Int64 = 0
    /// Whether no byte is taken for now, for whatever reason.
    var isPaused = false
    /// Whether something of this machine limits its throughput.
    var isHeldBack = false
    /// Whether the connection uses HTTP/1.1.
    var speaksHTTP1 = true
    /// Whether bytes of the response's body have come.
    var bodyBegun = false
    /// Whether the request went to the URL that an earlier redirect led to.
    var isShortcut = false
}

/// The facts that a decision depends on and that ``DownloadStateMachine`` does not keep by itself.
struct DownloadFacts {
    /// Monotonic time, in milliseconds.
    var now: Int64
    var part: PartContents
    var exchanges: [ExchangeFacts]

    subscript(number: Int) -> ExchangeFacts {
        exchanges.first { $0.number == number } ?? ExchangeFacts(number: number)
    }
}
