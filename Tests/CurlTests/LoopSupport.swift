import Glibc
import TestSupport

@testable import Curl

extension TransferLoop {
    /// Runs `work` on the loop's thread and waits for its result.
    func run<Value: Sendable>(_ work: @escaping @Sendable (LoopCore) -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            post { core in continuation.resume(returning: work(core)) }
        }
    }
}

/// The outcome of an exchange, as values that may cross threads.
struct ExchangeRecord: Sendable, Equatable {
    var ending = ""
    var systemError: Int32 = 0
    var headerLines: [String] = []
    var body: [UInt8] = []
}

/// A handler that records the callbacks of an exchange. It lives on the loop's thread.
final class RecordingHandler: ExchangeHandler {
    private var record = ExchangeRecord()
    /// The number of body pieces that are paused before one is accepted.
    private var pauses: Int
    /// The verdict on the pieces after the pauses.
    private let verdict: BodyVerdict
    let holdsPause: Bool
    private let paused: (Exchange) -> Void
    private let ended: @Sendable (ExchangeRecord) -> Void

    init(
        pauses: Int = 0, verdict: BodyVerdict = .accepted, holdsPause: Bool = true,
        paused: @escaping (Exchange) -> Void = { _ in }, ended: @escaping @Sendable (ExchangeRecord) -> Void
    ) {
        self.pauses = pauses
        self.verdict = verdict
        self.holdsPause = holdsPause
        self.paused = paused
        self.ended = ended
    }

    func receiveHeader(_ line: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool {
        record.headerLines.append(String(decoding: line.filter { $0 != 0x0D && $0 != 0x0A }, as: UTF8.self))
        return true
    }

    func receive(_ bytes: UnsafeRawBufferPointer, on exchange: Exchange) -> BodyVerdict {
        if pauses > 0 {
            pauses -= 1
            paused(exchange)
            return .paused
        }
        if case .accepted = verdict { record.body += bytes }
        return verdict
    }

    func fill(_ space: UnsafeMutableRawBufferPointer, on exchange: Exchange) -> FillVerdict { .filled(0) }

    func evaluate(_ certificates: ServerCertificates, on exchange: Exchange) -> Bool { true }

    func rewind(to offset: Int64) -> Bool { true }

    func exchangeDidEnd(_ exchange: Exchange, _ ending: ExchangeEnding) {
        record.ending =
            switch ending {
            case .finished: "finished"
            case .failed(let error): "failed \(error.code)"
            case .stalled: "stalled"
            case .cancelled: "cancelled"
            }
        record.systemError = exchange.easy.systemError()
        ended(record)
    }
}

extension TransferLoop {
    /// Fetches `url` and waits for the exchange to end.
    func fetch(
        _ url: String, stallTimeout: Int64 = 0, pausing milliseconds: Int64? = nil
    ) async -> ExchangeRecord {
        await withCheckedContinuation { continuation in
            post { core in
                let handler = RecordingHandler(pauses: milliseconds == nil ? 0 : 1) { exchange in
                    _ = core.after(milliseconds: milliseconds ?? 0) { [id = exchange.id] in
                        core.exchange(id)?.unpause()
                    }
                } ended: {
                    continuation.resume(returning: $0)
                }
                core.begin(url, handler, stallTimeout: stallTimeout)
            }
        }
    }
}

extension LoopCore {
    func begin(_ url: String, _ handler: RecordingHandler, stallTimeout: Int64 = 0) {
        _ = try? start(handler: handler) { (exchange: Exchange) throws(CurlError) in
            try exchange.easy.set(.url, to: url)
            try exchange.easy.set(.proxy, to: "")
            exchange.activity.stallTimeout = stallTimeout
        }
    }
}
