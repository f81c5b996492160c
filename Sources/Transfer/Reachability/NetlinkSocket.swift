import CLinux
import Glibc

/// A netlink socket for the kernel's tables of links, addresses and routes. It belongs to the network namespace of the
/// thread that creates it.
final class NetlinkSocket: Sendable {
    /// The size of the receive buffer, in bytes. The kernel sends dump datagrams of at most 32 KiB.
    private static let datagramSize = 32 * 1024
    /// The time-out for the next datagram of a dump, in milliseconds. The kernel normally sends it at once.
    private static let replyTimeout: Int32 = 5000
    /// The number of attempts at a dump that changes while the kernel sends it.
    private static let attempts = 8

    let descriptor: FileDescriptorOwner

    /// Creates a socket.
    ///
    /// - Parameter listens: Whether to receive change notifications.
    init(listens: Bool) throws(TransferError) {
        let raw = linux_netlink_route(listens ? 1 : 0)
        guard raw >= 0 else { throw .file(errno, doing: "ask the kernel about the network") }
        descriptor = FileDescriptorOwner(raw)
    }

    /// The result of a non-blocking receive.
    enum Received {
        case messages([NetlinkMessage])
        /// Messages were lost because the receive buffer was full.
        case lost
        case nothing
        case failed(Int32)
    }

    func receive() -> Received {
        // `errno` must be read directly after the call, because later calls may change it.
        var failure: Int32 = 0
        let datagram = [UInt8](unsafeUninitializedCapacity: Self.datagramSize) { space, count in
            let received = linux_netlink_receive(descriptor.raw, space.baseAddress, space.count)
            if received < 0 { failure = errno }
            count = max(0, received)
        }
        switch failure {
        case 0: return .messages(NetlinkMessage.parse(datagram))
        case EAGAIN: return .nothing
        case ENOBUFS: return .lost
        default: return .failed(failure)
        }
    }

    /// Requests the complete state from the kernel. Only one thread may call it at a time, on a socket that does not
    /// listen.
    func picture() throws(TransferError) -> NetworkPicture {
        var sequence = UInt32.random(in: .min ... .max)
        var picture = NetworkPicture()
        for _ in 0..<Self.attempts {
            picture = NetworkPicture()
            var isConsistent = true
            for type in [LINUX_RTM_GETLINK, LINUX_RTM_GETADDR, LINUX_RTM_GETROUTE] {
                sequence &+= 1
                guard linux_netlink_dump(descriptor.raw, UInt16(type), sequence) == 0 else {
                    throw .file(errno, doing: "ask the kernel about the network")
                }
                if try !collect(sequence, into: &picture) { isConsistent = false }
            }
            if isConsistent { break }
        }
        // If the state changes continuously, the last dump is used. The next change is notified as well.
        return picture
    }

    /// Receives one dump.
    ///
    /// - Returns: Whether the dump is consistent.
    private func collect(_ sequence: UInt32, into picture: inout NetworkPicture) throws(TransferError) -> Bool {
        var isConsistent = true
        while true {
            switch receive() {
            case .messages(let messages):
                // Messages of an earlier, abandoned dump are ignored.
                for message in messages where message.sequence == sequence {
                    if message.isInterrupted { isConsistent = false }
                    switch message.content {
                    case .done: return isConsistent
                    case .failed(let error): throw .file(error, doing: "ask the kernel about the network")
                    default: picture.add(message.content)
                    }
                }
            case .lost: isConsistent = false
            case .nothing:
                var entry = pollfd(fd: descriptor.raw, events: Int16(POLLIN), revents: 0)
                guard poll(&entry, 1, Self.replyTimeout) != 0 else {
                    throw .file(ETIMEDOUT, doing: "ask the kernel about the network")
                }
            case .failed(let error): throw .file(error, doing: "ask the kernel about the network")
            }
        }
    }
}
