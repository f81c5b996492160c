import Curl
import TestSupport

@testable import Transfer

/// The part file of a model: what `DownloadFile` and `BodyWriter` do with a real one.
extension DownloadModel {
    /// The number of gathered bytes from which on they are written.
    private var largestBuffer: Int64 { 2 << 20 }

    /// Finds out which digest the file is to have.
    mutating func place(_ head: ResponseHead?) throws(TransferError) {
        isPlaced = true
        digest = settings.digest?.digest ?? statedDigest(head)
        part.hasDigest = digest != nil
        guard part.version.isJoined, !part.isJoinable else { return }
        throw TransferError(.remoteChanged, "there is no digest any more")
    }

    private mutating func statedDigest(_ head: ResponseHead?) -> FileDigest? {
        let tag = (head?.validator ?? part.version.validator).strongEntityTag
        if let digest = head?.representationDigest ?? part.version.digest {
            stated = StatedDigest(digest: digest, entityTag: tag)
            return digest
        }
        return tag != nil && stated?.entityTag == tag ? stated?.digest : nil
    }

    /// Returns where a comparison with the end of the part begins.
    func start(of overlap: Overlap) -> Int64 {
        let file = file
        let start = try? overlap.start(before: part.front) { (space, offset) throws(TransferError) in
            guard let bytes = file.bytes(offset..<offset + Int64(space.count)) else { return 0 }
            space.copyBytes(from: bytes)
            return bytes.count
        }
        return start ?? 0
    }

    /// Prepares the part for a body.
    mutating func begin(
        _ plan: BodyPlan, _ head: ResponseHead, at url: CurlURL, _ number: Int
    ) throws(TransferError) {
        if plan.keepsFront {
            if let index = index(of: number) { connections[index].writer.drop() }
            if part.keepFront() { file.remove(part.front..<Int64.max) }
        }
        if let reason = plan.startsOver { dropPart(number, reason) }
        var claimed = plan.claimed
        if plan.isShare {
            if !isPlaced { try place(head) }
            if machine.isVouched(by: ResumeData.resource(of: url.text), part) {
                part.adopt(plan.claimed)
            } else {
                _ = part.join()
            }
            claimed = part.version
        } else {
            try place(head)
        }
        guard let index = index(of: number) else { return }
        connections[index].writer = Writer(
            position: plan.offset, overlapEnd: part.written.end(ofRangeAt: plan.offset), claimed: claimed,
            decoder: BodyDecoder(plan.codings))
        adopt(index)
    }

    /// Takes over what the head said, once the body has been compared with the bytes of the part.
    private mutating func adopt(_ index: Int) {
        let writer = connections[index].writer
        guard writer.position >= writer.overlapEnd, let claimed = writer.claimed else { return }
        part.adopt(claimed)
        connections[index].writer.claimed = nil
    }

    mutating func append(_ content: ModelContent, _ number: Int) throws(TransferError) {
        guard let index = index(of: number) else { return }
        guard let decoder = connections[index].writer.decoder else { return try write(content, index) }
        var decoded: [UInt8] = []
        let bytes = content.bytes
        do {
            try bytes.withUnsafeBytes { bytes in try decoder.decode(bytes) { decoded += $0 } }
        } catch {
            throw error as? TransferError ?? TransferError(.internal, "\(error)")
        }
        try write(.bytes(decoded), index)
    }

    private mutating func write(_ content: ModelContent, _ index: Int) throws(TransferError) {
        var rest = content
        let (position, overlapEnd) = (connections[index].writer.position, connections[index].writer.overlapEnd)
        if position < overlapEnd {
            let count = min(content.count, overlapEnd - position)
            guard file.holds(content.part(0, count), at: position) else {
                throw TransferError(.remoteChanged, "the bytes differ")
            }
            connections[index].writer.position += count
            adopt(index)
            rest = content.part(count, content.count)
        }
        guard rest.count > 0 else { return }
        connections[index].writer.gathered.append(rest)
        connections[index].writer.pending += rest.count
        connections[index].writer.position += rest.count
        if connections[index].writer.pending >= largestBuffer { flush(connections[index].number) }
    }

    mutating func flushAll() { for connection in connections { flush(connection.number) } }

    mutating func flush(_ number: Int) {
        guard let index = index(of: number), connections[index].writer.pending > 0 else { return }
        let writer = connections[index].writer
        var position = writer.position - writer.pending
        part.record(position..<writer.position)
        for content in writer.gathered {
            file.write(content, at: position)
            position += content.count
        }
        connections[index].writer.drop()
    }

    mutating func dropPart(_ number: Int, _ reason: String) {
        if part.count > 0 { restarts.append(reason) }
        if let index = index(of: number) { connections[index].writer.drop() }
        part.removeAll()
        file = ModelFile()
        digest = nil
        stopTick()
    }

    mutating func finish(_ number: Int) {
        do throws(TransferError) {
            if !isPlaced { try place(nil) }
        } catch {
            return perform(machine.diskFailed(number, error, facts))
        }
        flushAll()
        let position = index(of: number).map { connections[$0].writer.position }
        let size = part.version.total ?? max(position ?? 0, part.front)
        guard part.front >= size else {
            return perform(machine.diskFailed(number, TransferError(.remoteChanged, "a gap"), facts))
        }
        if part.front > size {
            part = PartContents(version: part.version, written: part.written.clamped(to: size))
            file.remove(size..<Int64.max)
        }
        guard isVerified(size: size) else {
            return conclude(.failed(.checksumMismatch), TransferError(.checksumMismatch, "another digest"))
        }
        conclude(.finished)
    }

    private func isVerified(size: Int64) -> Bool {
        guard let digest else { return true }
        let known = [settings.digest].compactMap(\.self) + settings.statedDigests
        return known.contains { $0.digest == digest && file.isWhole($0.resource, size: size) }
    }
}

extension DownloadModel {
    /// Creates a download from servers of one file.
    ///
    /// - Parameters:
    ///   - digestVersion: the version whose digest the destination has; `nil`: none.
    ///   - servers: the first is the file's own; the others are mirrors.
    init(
        size: Int64, segments: Segments = .one, servers: [VersionedServer] = [VersionedServer()],
        digestVersion: Int? = nil, chunk: Int64 = 1 << 20
    ) {
        let digest = digestVersion.map { version in
            ModelDigest(
                digest: FileDigest(algorithm: .sha256, bytes: Array(repeating: UInt8(version), count: 32)),
                resource: VersionedServer.resource(version, size: size))
        }
        self.init(
            Settings(
                mirrors: servers.indices.dropFirst().map { "http://mirror\($0)/f" }, segments: segments,
                digest: digest, versions: [1, 2].map { VersionedServer.resource($0, size: size) }, chunk: chunk),
            servers: servers.map { server in
                var server = server
                server.size = size
                return .versioned(server)
            })
    }

    /// Changes the server of a source.
    mutating func changeServer(_ source: Int, _ change: (inout VersionedServer) -> Void) {
        guard case .versioned(var server) = servers[source] else { return }
        change(&server)
        servers[source] = .versioned(server)
    }
}
