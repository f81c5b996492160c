import Synchronization

/// Bytes that an SSH server may send over a connection, by what its transfers have brought so far.
///
/// libssh2 1.10 keeps each packet that it did not wait for until the connection ends, without a limit, and before the
/// login too. It does not tell how many it has: what the kernel received beyond what was of use bounds it.
final class ReceiptLimit: Sendable {
    /// Bytes that the transfers' beginnings may take. Like the other two, written by the loop's thread alone.
    private let beginnings = Atomic<UInt64>(0)
    private let received = Atomic<UInt64>(0)
    private let sent = Atomic<UInt64>(0)

    /// For the handshake and the login, and what libssh2 reads ahead of the first bytes that it hands on.
    private static let atFirst: UInt64 = 2 << 20
    /// For what libssh2 reads ahead later on.
    private static let readAhead: UInt64 = 8 << 20
    /// For the opening of a file and what is asked about it.
    private static let ofBeginning: UInt64 = 16 << 10
    /// For packets of a server that makes them small.
    private static let mostOfSmallPackets: UInt64 = 24 << 20

    func noteBeginning() { Self.add(Self.ofBeginning, to: beginnings) }

    func noteReceived(_ count: Int) { Self.add(UInt64(count), to: received) }

    func noteSent(_ count: Int) { Self.add(UInt64(count), to: sent) }

    private static func add(_ count: UInt64, to counter: borrowing Atomic<UInt64>) {
        counter.store(counter.load(ordering: .relaxed) &+ count, ordering: .relaxed)
    }

    /// Bytes that the kernel may have received.
    var bytes: UInt64 {
        let received = received.load(ordering: .relaxed)
        let sent = sent.load(ordering: .relaxed)
        var limit = beginnings.load(ordering: .relaxed)
        limit &+= received == 0 ? Self.atFirst : Self.readAhead
        // OpenSSH's packets of 30,000 bytes bring 0.2 % besides.
        limit &+= received &+ received / 256 &+ min(received / 16, Self.mostOfSmallPackets)
        // An answer of some 100 bytes to each write of 30,000.
        return limit &+ sent / 128
    }
}
