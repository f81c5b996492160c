import CLinux
import Glibc

/// A socket to the kernel's tables of links, addresses and routes, those of the network namespace that the thread which
/// makes it is in.
final class NetlinkSocket: Sendable {
    /// Bytes of one datagram: the kernel fills no more than 32 KiB with an answer.
    private static let datagramSize = 32 * 1024
    /// Milliseconds for the next datagram of an answer, which the kernel has at once.
    private static let patience: Int32 = 5000
    /// How often an answer is asked for again that changed while it was told.
    private static let attempts = 8

    let descriptor: FileDescriptorOwner

    /// - Parameter listens: whether to be told of changes.
    init(listens: Bool) throws(TransferError) {
        let raw = linux_netlink_route(listens ? 1 : 0)
        guard raw >= 0 else { throw .file(errno, doing: "ask the kernel about the network") }
        descriptor = FileDescriptorOwner(raw)
    }

    /// What was received, without waiting.
    enum Received {
        case messages([NetlinkMessage])
        /// Some were lost for want of room.
        case lost
        case nothing
        case failed(Int32)
    }

    func receive() -> Received {
        // An error is read at once after the call: what follows may set another.
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

    /// Asks the kernel for all there is. For one thread at a time, on a socket that does not listen.
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
        // Where it changes all the time, the last answer must do: the next change is told too.
        return picture
    }

    /// - Returns: whether the answer is of one moment.
    private func collect(_ sequence: UInt32, into picture: inout NetworkPicture) throws(TransferError) -> Bool {
        var isConsistent = true
        while true {
            switch receive() {
            case .messages(let messages):
                // Those of an earlier answer that was given up on are passed over.
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
                guard poll(&entry, 1, Self.patience) != 0 else {
                    throw .file(ETIMEDOUT, doing: "ask the kernel about the network")
                }
            case .failed(let error): throw .file(error, doing: "ask the kernel about the network")
            }
        }
    }
}
