import TestSupport
import Testing

@testable import Transfer

/// One way of lying, and what may come of it.
struct Lie: Sendable, CustomTestStringConvertible {
    /// How much of the file is here before the lies begin.
    enum Life: String, Sendable, CaseIterable {
        /// Nothing.
        case fresh
        /// About half, from an earlier life in which the server was honest.
        case resumed
    }

    var testDescription: String
    var path = "/f"
    /// Of the server that is asked first.
    var ports = 1
    /// Versions that the server really has: nothing else may get the file's name. None where no right answer exists.
    var versions = [Liar.a]
    /// Ways to fail that are right too.
    var failures: Set<TransferError.Code> = []
    var digest: FileDigest?
    var lives = Life.allCases
    var connections = [Segments.one, .fixed(4), .automatic]
    /// More would be an endless restart.
    var mostRequests = 200
    /// Bytes of body that the server sends in the earlier life; `nil`: any number.
    var earlierBytes: Int64? = Liar.size / 2
    /// Of the earlier life.
    var before: Liar.Answering = { LiarAnswer(honest: Liar.a, to: $0) }
    /// Of the life that is looked at; made anew for each.
    var answering: @Sendable (Liar) -> Liar.Answering

    init(
        _ name: String, versions: [Resource] = [Liar.a], failures: Set<TransferError.Code> = [],
        answering: @escaping @Sendable (Liar) -> Liar.Answering
    ) {
        testDescription = name
        self.versions = versions
        self.failures = failures
        self.answering = answering
    }

    init(
        _ name: String, versions: [Resource] = [Liar.a], failures: Set<TransferError.Code> = [],
        _ answer: @escaping Liar.Answering
    ) {
        self.init(name, versions: versions, failures: failures, answering: { _ in answer })
    }

    func but(_ change: (inout Lie) -> Void) -> Lie {
        var lie = self
        change(&lie)
        return lie
    }
}

extension Liar {
    /// Large enough that a second connection joins, twice: also where half of it is there.
    static let size: Int64 = 12 << 20 + 12_345
    /// Two versions of one size, and one that is longer.
    static let a = Resource(size: size, seed: 1)
    static let b = Resource(size: size, seed: 2)
    static let longer = Resource(size: size + 100_000, seed: 3)
    /// Where the first answer breaks off, so that something has to be asked for again whatever else happens.
    static let firstCut = size * 6 / 10
}

extension Resource {
    func tagged(_ tag: String?) -> Resource {
        var resource = self
        resource.entityTag = tag
        return resource
    }
}
