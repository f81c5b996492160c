/// The state of one connection of a download: the bytes that it is to fetch, and how far its request and the response
/// to it have come.
///
/// A value without I/O. ``DownloadStateMachine`` holds one for each connection.
struct SegmentConnection {
    enum Phase: Equatable {
        /// A state before the response head: no request is under way, or its response has yet to come.
        case requesting
        /// The body belongs to the file, up to `end` where the response says where it ends.
        case receiving(end: Int64?)
        /// The body is read and dropped; `outcome` follows once it ends.
        case discarding(SegmentOutcome)
        /// The exchange is being broken off by this side; `outcome` follows.
        case interrupted(SegmentOutcome)
    }

    /// Whether the last bytes of the part were requested, to see whether more follow. Once is enough.
    enum EndCheck: Equatable { case none, underWay, done }

    /// The conditions under which the present request was sent.
    struct RangeRequest: Equatable {
        /// The first requested byte; `nil` where the whole resource was requested.
        var from: Int64?
        /// Whether the request carries `If-Range`.
        var isConditional = false
        /// Whether other connections fetch the file too, so that only the requested range is of use.
        var isConcurrent = false
        /// The position that the part had reached when the request was sent.
        var have: Int64 = 0
    }

    /// Tells the connection from the others of its download.
    let number: Int
    /// The number of the source that it requests from.
    let source: Int
    var phase = Phase.requesting
    /// Whether a request was sent whose end has not been seen.
    var isUnderWay = false
    /// Whether a timer will send its next request.
    var isResting = false
    /// The first byte of its claim that is not written yet.
    var start: Int64 = 0
    /// The end of its claim; `nil`: the end of the file.
    var end: Int64?
    var request = RangeRequest()
    /// The URL that answers, as the digest that ``ResumeData/resource(of:)`` makes of it; `nil` before the first
    /// request.
    private(set) var resource: String?
    /// The URL of ``resource``, if it is known.
    private var resourceURL: String?
    /// Why the whole resource is requested although bytes of it are here.
    var reasonForWhole: String?
    var endCheck = EndCheck.none
    /// Whether the body is a part of the resource (206).
    var isPart = false
    /// Whether the body under way goes to the file.
    var isWriting = false
    /// The width of the comparison that stands in for a strong validator.
    var overlap = Overlap()
    var timing = SegmentTiming()

    init(number: Int, source: Int) {
        self.number = number
        self.source = source
    }

    /// Records the URL that answers.
    ///
    /// - Returns: ``resource``.
    mutating func setResource(url: String) -> String {
        if url == resourceURL, let resource { return resource }
        let digest = ResumeData.resource(of: url)
        (resource, resourceURL) = (digest, url)
        return digest
    }

    /// Records the URL that answers by its digest.
    mutating func setResource(_ digest: String?) { (resource, resourceURL) = (digest, nil) }

    /// Whether a body that belongs to the file is being received.
    var isReceiving: Bool { if case .receiving = phase { true } else { false } }

    /// The end of the response under way, as far as it says so.
    var reach: Int64? { if case .receiving(let end) = phase { end } else { nil } }

    /// The next byte that it is to bring.
    ///
    /// - Parameter written: the position of its writer.
    func position(_ written: Int64) -> Int64 { isWriting ? max(start, written) : start }

    /// Whether the request under way has brought bytes that were not there when it was sent.
    var hasProgressed: Bool { start > request.have }

    /// Narrows the comparison, where the response ended before any new byte.
    ///
    /// - Returns: whether to request once more from nearer to the end.
    mutating func narrowOverlap() -> Bool {
        guard isPart, let from = request.from, from < request.have, start <= request.have, timing.receivedNow > 0
        else { return false }
        return overlap.shrink()
    }
}

/// The outcome of one exchange of a download, from which the download goes on.
enum SegmentOutcome: Equatable {
    /// libcurl saw a complete body; `end` is where it was to end, as far as that is known.
    case bodyEnded(end: Int64?)
    /// Every byte of the claim is here; the response has more.
    case claimFulfilled
    /// The part is of no use: the whole is to be requested.
    case requestWhole(reason: String)
    /// The part was seen to be wrong: it is dropped, and the whole is requested.
    case startOver(reason: String)
    /// The server does not honour `If-Range`.
    case requestUnconditionally
    /// The server says that no byte follows the part; its last bytes are requested to verify that.
    case confirmEnd
    /// Nothing is left to fetch.
    case complete
    /// The server has another version than the one in the part.
    case changed(reason: String)
    /// The response is not the requested range.
    case unusable(reason: String)
    /// The exchange failed.
    case failed(TransferError)
    /// The received bytes cannot be kept, or must not be.
    case refused(TransferError)
    /// The connection was too slow.
    case replaced
    /// The rest is to be requested over a connection that no other request shares.
    case needsOwnConnection

    /// Whether it says nothing against the bytes of the part: where those are complete, the download is.
    var leavesPartIntact: Bool {
        switch self {
        case .requestWhole, .requestUnconditionally, .confirmEnd, .changed, .unusable, .failed, .replaced,
            .needsOwnConnection:
            true
        // Either the part was seen to be wrong, or the end is evaluated by itself.
        case .bodyEnded, .claimFulfilled, .complete, .startOver, .refused: false
        }
    }
}
