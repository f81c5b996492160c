import Synchronization

/// A limit on the bytes that an SSH server may send over a connection. It grows with the useful bytes of the
/// connection's transfers.
///
/// libssh2 1.10 keeps each packet that it did not wait for until the connection ends, without a limit, and even before
/// authentication. It does not report how many it has. The bytes that the kernel received beyond the useful ones are an
/// upper bound.
final class ReceiptLimit: Sendable {
    /// The bytes allowed for the start of each transfer. The three counters are written by the loop's thread only.
    private let beginnings = Atomic<UInt64>(0)
    private let received = Atomic<UInt64>(0)
    private let sent = Atomic<UInt64>(0)

    /// The allowance for the handshake, the authentication and libssh2's read-ahead before its first bytes of data.
    private static let atFirst: UInt64 = 2 << 20
    /// The allowance for libssh2's later read-ahead.
    private static let readAhead: UInt64 = 8 << 20
    /// The allowance for opening a file and querying its attributes.
    private static let ofBeginning: UInt64 = 16 << 10
    /// The most overhead allowed for a server that sends small packets.
    private static let mostOfSmallPackets: UInt64 = 24 << 20

    func recordBeginning() { Self.add(Self.ofBeginning, to: beginnings) }

    func recordReceived(_ count: Int) { Self.add(UInt64(count), to: received) }

    func recordSent(_ count: Int) { Self.add(UInt64(count), to: sent) }

    private static func add(_ count: UInt64, to counter: borrowing Atomic<UInt64>) {
        counter.store(counter.load(ordering: .relaxed) &+ count, ordering: .relaxed)
    }

    /// The number of bytes that the kernel may have received.
    var bytes: UInt64 {
        let received = received.load(ordering: .relaxed)
        let sent = sent.load(ordering: .relaxed)
        var limit = beginnings.load(ordering: .relaxed)
        limit &+= received == 0 ? Self.atFirst : Self.readAhead
        // OpenSSH's packets of 30,000 bytes have an overhead of 0.2 %.
        limit &+= received &+ received / 256 &+ min(received / 16, Self.mostOfSmallPackets)
        // Each write of 30,000 bytes gets a response of about 100 bytes.
        return limit &+ sent / 128
    }
}
