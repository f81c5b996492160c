import TestSupport
import Testing

@testable import Transfer

/// A misbehaviour of a server, and the permitted outcomes.
struct Lie: Sendable, CustomTestStringConvertible {
    /// The state of the download before the lies begin.
    enum Life: String, Sendable, CaseIterable {
        /// A download without any bytes.
        case fresh
        /// A resumed download with about half of the file, received while the server was honest.
        case resumed
    }

    var testDescription: String
    var path = "/f"
    /// The number of ports of the server.
    var ports = 1
    /// The versions that the server really has: no other contents may get the file's name. Empty if no right response
    /// exists.
    var versions = [MisbehavingServer.a]
    /// Failures that are acceptable too.
    var failures: Set<TransferError.Code> = []
    var digest: FileDigest?
    var lives = Life.allCases
    var connections = [Segments.one, .fixed(4), .automatic]
    /// The limit on requests; more would be an endless restart.
    var mostRequests = 200
    /// The number of body bytes that the server sends in the earlier life; `nil` for no limit.
    var earlierBytes: Int64? = MisbehavingServer.size / 2
    /// The responses in the earlier life.
    var before: MisbehavingServer.Answering = { MisbehavingResponse(honest: MisbehavingServer.a, to: $0) }
    /// Creates the responses in the life under test, anew for each trial.
    var answering: @Sendable (MisbehavingServer) -> MisbehavingServer.Answering

    init(
        _ name: String, versions: [Resource] = [MisbehavingServer.a], failures: Set<TransferError.Code> = [],
        answering: @escaping @Sendable (MisbehavingServer) -> MisbehavingServer.Answering
    ) {
        testDescription = name
        self.versions = versions
        self.failures = failures
        self.answering = answering
    }

    init(
        _ name: String, versions: [Resource] = [MisbehavingServer.a], failures: Set<TransferError.Code> = [],
        _ answer: @escaping MisbehavingServer.Answering
    ) {
        self.init(name, versions: versions, failures: failures, answering: { _ in answer })
    }

    func but(_ change: (inout Lie) -> Void) -> Lie {
        var lie = self
        change(&lie)
        return lie
    }
}

extension MisbehavingServer {
    /// A size large enough that a second connection joins, twice: even if half of the file is already there.
    static let size: Int64 = 12 << 20 + 12_345
    /// Two versions of one size, and a longer one.
    static let a = Resource(size: size, seed: 1)
    static let b = Resource(size: size, seed: 2)
    static let longer = Resource(size: size + 100_000, seed: 3)
    /// The offset at which the first response is cut, so that a second request is needed in any case.
    static let firstCut = size * 6 / 10
}

extension Resource {
    func tagged(_ tag: String?) -> Resource {
        var resource = self
        resource.entityTag = tag
        return resource
    }
}
