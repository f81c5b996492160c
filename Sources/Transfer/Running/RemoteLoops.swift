import Curl
import Synchronization

/// The loops of FTP, FTPS and SFTP, made when they are first wanted.
///
/// libcurl waits within its calls for the last words of such a server (the reply to a transfer, the closing of an SFTP
/// file, renaming), and with it the loop. So these transfers have loops apart from HTTP's, and a server always the
/// same one: who is slow there holds up few others. These loops may read small local files too.
final class RemoteLoops: Sendable {
    static let count = 16

    private let loops = Mutex<[Int: TransferLoop]>([:])
    private let faults: LoopFaults

    init(faults: LoopFaults) { self.faults = faults }

    /// - Parameter otherwise: the one to take where the system has no thread for another.
    func loop(for url: String, otherwise: TransferLoop) -> TransferLoop {
        let number = Self.number(of: url)
        return loops.withLock { loops in
            if let loop = loops[number] { return loop }
            // Once taken, it stays: a task is found on the loop that it began on.
            let loop = (try? TransferLoop(name: "dld-remote-\(number)", faults: faults)) ?? otherwise
            loops[number] = loop
            return loop
        }
    }

    func stop() {
        for loop in loops.withLock({ $0.values }) { loop.stop() }
    }

    /// By the server, without who logs in.
    private static func number(of url: String) -> Int {
        let start = url.firstRange(of: "://")?.upperBound ?? url.startIndex
        var authority = url[start...].prefix { $0 != "/" }
        if let at = authority.lastIndex(of: "@") { authority = authority[authority.index(after: at)...] }
        let hash = authority.utf8.reduce(UInt64(14_695_981_039_346_656_037)) { hash, byte in
            (hash ^ UInt64(byte | 0x20)) &* 1_099_511_628_211
        }
        return Int(hash % UInt64(count))
    }
}
