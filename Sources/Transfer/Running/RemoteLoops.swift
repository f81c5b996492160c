import Curl
import Synchronization

/// The loops of FTP, FTPS and SFTP, made when they are first wanted.
///
/// libcurl waits within its calls for the last reply of such a server (to a transfer, to the closing of an SFTP file, to
/// renaming), and blocks the loop meanwhile. So these transfers have loops apart from HTTP's. A server has a group of
/// loops, over which its tasks are spread: a slow server blocks few tasks of its own, and few other servers. These
/// loops may read small local files too.
final class RemoteLoops: Sendable {
    /// Groups of loops, and loops of one group.
    static let groups = 16
    static let groupSize = 8

    private let loops = Mutex<[Int: TransferLoop]>([:])
    private let faults: LoopFaults

    init(faults: LoopFaults) { self.faults = faults }

    /// - Parameters:
    ///   - task: ``TaskCore/home``. Tasks that follow one another have different loops.
    ///   - otherwise: the one to take where the system has no thread for another.
    func loop(for url: String, task: Int, otherwise: TransferLoop) -> TransferLoop {
        let number = Self.group(of: url) * Self.groupSize + task % Self.groupSize
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

    /// The group of a server, whoever logs in there.
    private static func group(of url: String) -> Int {
        let start = url.firstRange(of: "://")?.upperBound ?? url.startIndex
        var authority = url[start...].prefix { $0 != "/" }
        if let at = authority.lastIndex(of: "@") { authority = authority[authority.index(after: at)...] }
        let hash = authority.utf8.reduce(UInt64(14_695_981_039_346_656_037)) { hash, byte in
            (hash ^ UInt64(byte | 0x20)) &* 1_099_511_628_211
        }
        return Int(hash % UInt64(groups))
    }
}
