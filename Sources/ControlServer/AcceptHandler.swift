import Glibc
import NIOCore

/// Keeps accept() from spinning when no descriptor is left.
///
/// NIO stays registered for reading after such an error, and a listening socket with a connection waiting is
/// always readable. So a descriptor is freed from the reserve; with none left there, accepting pauses.
final class AcceptHandler: ChannelInboundHandler {
    typealias InboundIn = any Channel

    static let pause = TimeAmount.milliseconds(100)
    private let reserve: DescriptorReserve

    init(reserve: DescriptorReserve) {
        self.reserve = reserve
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        reserve.refill()
        context.fireChannelRead(data)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? IOError, [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(error.errnoCode) else {
            // One connection's failure is no reason to stop listening.
            return
        }
        guard !reserve.release() else { return }
        let channel = context.channel
        channel.setOption(.autoRead, value: false).whenSuccess {
            channel.eventLoop.scheduleTask(in: Self.pause) {
                channel.setOption(.autoRead, value: true)
            }
        }
    }
}

/// Descriptors kept back, so that the control socket answers even when transfers have used up all others.
/// Belongs to the event loop.
final class DescriptorReserve {
    private let size: Int
    private var descriptors: [Int32] = []

    init(size: Int = 8) {
        self.size = size
        refill()
    }

    deinit {
        while release() {}
    }

    var count: Int { descriptors.count }

    /// Makes it whole again, as far as descriptors are to be had.
    func refill() {
        while descriptors.count < size {
            let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { return }
            descriptors.append(descriptor)
        }
    }

    /// Frees one descriptor for use.
    ///
    /// - Returns: `false` where none was left.
    func release() -> Bool {
        guard let descriptor = descriptors.popLast() else { return false }
        _ = Glibc.close(descriptor)  // frees the number whatever it returns (close(2))
        return true
    }
}
