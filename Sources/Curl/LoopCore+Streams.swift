import CCurl

/// The receiver of events on a file descriptor that libcurl does not watch.
protocol DescriptorWatcher: AnyObject {
    /// - Parameter mask: the epoll events, such as `EPOLLIN`.
    func descriptorIsReady(_ mask: UInt32)
}

/// The streams of a loop.
final class StreamTable {
    private(set) var byID: [Int: StreamConnection] = [:]
    private var byHandle: [UnsafeMutableRawPointer: StreamConnection] = [:]
    /// The streams with work to do before the loop sleeps.
    private var woken: [StreamConnection] = []

    var hasWork: Bool { !woken.isEmpty }

    subscript(easy: UnsafeMutableRawPointer) -> StreamConnection? {
        get { byHandle.isEmpty ? nil : byHandle[easy] }
        set { byHandle[easy] = newValue }
    }

    func add(_ stream: StreamConnection) { byID[stream.id] = stream }

    func remove(_ stream: StreamConnection) { byID[stream.id] = nil }

    func wake(_ stream: StreamConnection) { woken.append(stream) }

    func drainWoken() -> [StreamConnection] {
        defer { woken.removeAll() }
        return woken
    }
}

extension LoopCore {
    package var streamCount: Int { streams.byID.count }

    package func stream(_ id: Int) -> StreamConnection? { streams.byID[id] }

    /// Connects to `peer`; the handler is notified of the outcome.
    ///
    /// - Parameters:
    ///   - secure: whether to use TLS from the first byte.
    ///   - evaluatesAddresses: whether the handler decides on each address (``StreamHandler/evaluate(address:)``).
    ///   - configure: sets time limits, proxies, certificates and other options.
    /// - Throws: ``CurlError`` for options that libcurl does not accept; the handler is not called in that case.
    package func openStream(
        to peer: StreamPeer, secure: Bool = false, evaluatesAddresses: Bool = false, handler: any StreamHandler,
        configure: (inout EasyHandle) throws(CurlError) -> Void = { (_: inout EasyHandle) throws(CurlError) in }
    ) throws(CurlError) -> StreamConnection {
        let stream = try StreamConnection(id: makeID(), peer: peer, handler: handler, loop: self)
        try configure(&stream.easy)
        try stream.prepare(&stream.easy, secure: secure)
        if evaluatesAddresses { try stream.evaluateAddresses() }
        try enter(stream.easy.raw, of: stream)
        streams.add(stream)
        adjustConnectionLimit()
        return stream
    }

    /// Adds a handle of `stream`, which starts to connect.
    func enter(_ easy: UnsafeMutableRawPointer, of stream: StreamConnection) throws(CurlError) {
        try multi.add(easy)
        streams[easy] = stream
    }

    /// Removes a stream's handle and closes its connection.
    func leaveBehind(_ easy: UnsafeMutableRawPointer, of stream: StreamConnection) {
        streams[easy] = nil
        remove(easy, of: stream)
    }

    /// Removes a handle that its stream has given up, as ``leave(_:of:)`` does.
    func leaveBehind(_ handle: consuming EasyHandle) {
        streams[handle.raw] = nil
        let raw = handle.raw
        remove(raw, of: HandleOwner(handle))
    }

    func remove(_ stream: StreamConnection) {
        streams.remove(stream)
        adjustConnectionLimit()
    }

    /// Raises the limit on idle connections. libcurl counts streams among the connections it keeps, and they must not
    /// displace the idle ones of exchanges.
    private func adjustConnectionLimit() {
        // Two per stream, since there are two handles while TLS starts.
        multi.setMaximumIdleConnections(Self.idleConnections + 2 * streams.byID.count)
    }

    func runWokenStreams() {
        guard streams.hasWork else { return }
        for stream in streams.drainWoken() { stream.turn() }
    }

    func cancelStreams() {
        for stream in Array(streams.byID.values) { stream.cancel() }
    }
}
