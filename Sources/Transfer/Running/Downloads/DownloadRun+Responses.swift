import Curl
import Glibc
import HTTPTypes

/// The requests and responses of the download's connections.
extension DownloadRun: TransactionClient {
    /// Request fields that ask for a digest of the whole, which shows changes and damage (RFC 9530, section 4).
    private static let wantedDigests = "Want-Repr-Digest: sha-256=10, sha-512=5"

    func prepare(
        _ request: TransferRequest, at url: CurlURL, of transaction: Transaction
    ) throws(TransferError) -> Transaction.Contribution {
        var contribution = Transaction.Contribution(fields: Self.engineFields(for: request))
        let least = LeastPace(session.configuration, request).bytes
        contribution.configure = { (exchange: Exchange) throws(CurlError) in exchange.activity.leastBytes = least }
        var range = machine.requestRange(transaction.number, at: url.text, facts())
        if case .overlap(let overlap) = range {
            range = machine.overlapBegins(transaction.number, at: try file.start(of: overlap))
        }
        if case .range(let from, let last, let ifRange) = range {
            contribution.fields.append("Range: bytes=\(from)-\(last.map(String.init) ?? "")")
            if let ifRange { contribution.fields.append("If-Range: \(ifRange)") }
        }
        try outgoing?.prepare(request, of: transaction, &contribution)
        return contribution
    }

    func writeBody(to space: UnsafeMutableRawBufferPointer) -> BodySupply {
        outgoing?.write(to: space) ?? .written(0)
    }

    func rewindBody(to offset: Int64) -> Bool { outgoing?.rewind(to: offset) ?? true }

    /// Returns the field lines of each request of a download.
    static func engineFields(for request: TransferRequest) -> [String] {
        let asksForDigests = request.headerFields.contains { $0.name.canonicalName == "want-repr-digest" }
        return ["Accept-Encoding: identity"] + (asksForDigests ? [] : [wantedDigests])
    }

    // MARK: The head

    func didReceiveFinalHead(
        _ head: ResponseHead, at url: CurlURL, of transaction: Transaction
    ) -> HeadDisposition {
        guard let connection = connection(transaction.number) else { return .discard }
        if let error = outgoing?.didReceiveFinalHead(head, of: transaction) {
            machine.bodyRefused(connection.number, error)
            return .refuse(error)
        }
        let context = DownloadStateMachine.HeadContext(
            statedDigest: task.stated?.digest, hasDestinationDigest: destination?.digest != nil,
            sentCredential: transaction.sentCredential(for: head),
            current: head.status == 304 ? file.current() : nil, wallTime: Self.wallTime())
        let action = machine.headReceived(connection.number, head, at: url, context, facts())
        task.setUnconfirmed(machine.unconfirmed)
        guard case .receive(let plan) = action else { return .discard }
        if plan.keepsFront {
            // The run of the previous response would bring the bytes behind the gap back when it ends.
            connection.writer.drop()
            file.keepFront()
        }
        if let reason = plan.startsOver { dropPart(for: connection, reason) }
        do throws(TransferError) {
            if plan.isShare {
                try beginShare(plan, head, at: url, on: connection)
            } else {
                try beginBody(plan, head, on: connection)
            }
        } catch {
            machine.bodyRefused(connection.number, error)
            return .refuse(error)
        }
        perform(machine.bodyBegan(connection.number, plan, head, at: url, facts()))
        return .receive
    }

    /// Returns the time in milliseconds since 1970.
    private static func wallTime() -> Int64 {
        var time = timespec()
        _ = clock_gettime(CLOCK_REALTIME, &time)  // fails only for an unknown clock
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    private func beginShare(
        _ plan: BodyPlan, _ head: ResponseHead, at url: CurlURL, on connection: DownloadConnection
    ) throws(TransferError) {
        if file.target == nil || destination == nil {
            try place(ResourceMetadata(head, file.version), total: plan.total, on: connection)
        }
        if machine.isVouched(by: ResumeData.resource(of: url.text), file.contents) {
            file.adopt(plan.claimed)
        } else {
            file.join()
        }
        connection.writer.begin(at: plan.offset, of: file.version)
    }

    private func beginBody(
        _ plan: BodyPlan, _ head: ResponseHead, on connection: DownloadConnection
    ) throws(TransferError) {
        let metadata = ResourceMetadata(
            head, plan.offset == 0 ? plan.claimed : file.version.continued(by: plan.claimed))
        connection.undecided = nil
        try validate(head, length: plan.end.map { $0 - plan.offset }, on: connection)
        if let maximum = connection.transaction.request.maximumBodySize, let total = plan.total, total > maximum {
            throw TransferError(.tooLarge, "the file has \(total) bytes, more than the \(maximum) allowed")
        }
        if connection.validatesFirstByte, file.target == nil {
            connection.undecided = metadata
        } else {
            try place(metadata, total: plan.total, on: connection)
        }
        task.progress.setTotal(plan.claimed.total ?? file.version.total)
        connection.writer.begin(at: plan.offset, of: plan.claimed)
        connection.decoder = BodyDecoder(undone(plan, head))
        if file.count > 0 {
            session.delegate.downloadTask(
                task, didResumeAtOffset: file.count, expected: file.version.total ?? plan.total)
        }
    }

    /// Returns the codings that are undone on the way to the file. Under a digest, the bytes are stored as they come: the
    /// digest shows in the end whether they are the file, or the decoded ones.
    private func undone(_ plan: BodyPlan, _ head: ResponseHead) -> [BodyDecoder.Coding] {
        guard !plan.codings.isEmpty, let destination else { return plan.codings }
        if destination.digest != nil { return [] }
        let isFormat = BodyDecoder.undone(head.contentCodings, ofFile: [destination.name]).count < plan.codings.count
        return isFormat ? plan.codings.dropLast() : plan.codings
    }

    /// Finds the file's place, and makes sure that there is room for it.
    private func place(
        _ metadata: ResourceMetadata, total: Int64?, on connection: DownloadConnection
    ) throws(TransferError) {
        connection.undecided = nil
        let isOfMirror = (machine[connection.number]?.source ?? 0) > 0
        destination = try file.place(metadata, total: total, ofMirror: isOfMirror)
    }

    /// Checks the response by what the request demands, before its first byte: an error page must not become the file.
    private func validate(
        _ head: ResponseHead, length: Int64?, on connection: DownloadConnection
    ) throws(TransferError) {
        connection.validatesFirstByte = false
        guard let error = session.delegate.task(task, validate: head, isEmpty: length == 0) else { return }
        // A body of unknown length may turn out to be empty.
        guard length == nil, session.delegate.task(task, validate: head, isEmpty: true) == nil else {
            throw error
        }
        connection.validatesFirstByte = true
    }

    // MARK: The body

    func didReceiveBody(_ bytes: UnsafeRawBufferPointer, of transaction: Transaction) -> BodyDisposition {
        guard let connection = connection(transaction.number) else { return .refused(nil) }
        let writer = connection.writer
        guard machine.isReceiving(connection.number) else {
            return machine.bytesReceived(bytes.count, on: connection.number, at: 0, isDecoding: false) == .ignore
                ? .accepted : .refused(nil)
        }
        if let reason = writer.pause { return .paused(reason) }
        do throws(TransferError) {
            if connection.validatesFirstByte { try validateFirstByte(on: connection) }
            var action = machine.bytesReceived(
                bytes.count, on: connection.number, at: writer.position, isDecoding: connection.decoder != nil)
            if action == .claimReached {
                action = machine.claimReached(connection.number, bytes.count, at: writer.position, facts())
            }
            switch action {
            case .append:
                try append(bytes, on: connection)
                return .accepted
            case .fulfil(let count):
                try append(UnsafeRawBufferPointer(rebasing: bytes[..<count]), on: connection)
                return .refused(.cancelled)
            case .ignore: return .accepted
            case .refuse, .claimReached: return .refused(nil)
            case .fail(let error): throw error
            }
        } catch {
            machine.bodyRefused(connection.number, error)
            return .refused(error)
        }
    }

    private func append(
        _ bytes: UnsafeRawBufferPointer, on connection: DownloadConnection
    ) throws(TransferError) {
        task.progress.transferred(bytes.count)
        guard let decoder = connection.decoder else {
            try connection.writer.append(bytes)
            return try checkSize(connection)
        }
        try decoder.decode(bytes) { (piece: UnsafeRawBufferPointer) throws(TransferError) in
            try connection.writer.append(piece)
            try checkSize(connection)
        }
    }

    private func validateFirstByte(on connection: DownloadConnection) throws(TransferError) {
        connection.validatesFirstByte = false
        if let head = task.response, let error = session.delegate.task(task, validate: head, isEmpty: false) {
            throw error
        }
        if let undecided = connection.undecided { try place(undecided, total: nil, on: connection) }
    }

    private func checkSize(_ connection: DownloadConnection) throws(TransferError) {
        let position = connection.writer.position
        if file.isDecoded, position > BodyDecoder.largestSize(of: machine.received(connection.number)) {
            throw TransferError(.tooLarge, "the encoded body expands too much when it is decoded")
        }
        if let maximum = connection.transaction.request.maximumBodySize, position > maximum {
            throw TransferError(.tooLarge, "the file grew past the \(maximum) bytes allowed")
        }
    }

    func leavesSharedConnection(_ transaction: Transaction) -> Bool {
        guard let connection = connection(transaction.number) else { return false }
        return machine.leavesSharedConnection(
            connection.number, isDecoding: connection.decoder != nil, file.contents)
    }

    // MARK: The end

    /// Never called from within libcurl's callbacks.
    func didEnd(_ error: TransferError?, of transaction: Transaction) {
        guard let connection = connection(transaction.number), !isEnded else { return }
        var end = DownloadStateMachine.ExchangeEnd(
            error: outgoing.map { $0.evaluate(error, of: transaction) } ?? error,
            decodingError: connection.decoder?.failureAtEnd(),
            hasDigest: destination?.digest != nil, position: connection.writer.position,
            origin: transaction.url?.origin)
        connection.decoder = nil
        do throws(TransferError) {
            try connection.writer.endOfBody()
        } catch {
            end.overlapError = error
        }
        perform(machine.ended(connection.number, end, facts()))
        checkInvariants()
    }
}
