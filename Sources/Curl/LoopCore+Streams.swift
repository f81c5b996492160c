import CCurl

/// Whoever looks after a descriptor that is not libcurl's to watch.
protocol DescriptorWatcher: AnyObject {
    /// - Parameter mask: `EPOLLIN` and the like.
    func descriptorIsReady(_ mask: UInt32)
}

/// The streams of a loop.
final class StreamTable {
    private(set) var byID: [Int: StreamConnection] = [:]
    private var byHandle: [UnsafeMutableRawPointer: StreamConnection] = [:]
    /// Those that have something to do before the loop sleeps.
    private var stirred: [StreamConnection] = []

    var areStirred: Bool { !stirred.isEmpty }

    subscript(easy: UnsafeMutableRawPointer) -> StreamConnection? {
        get { byHandle.isEmpty ? nil : byHandle[easy] }
        set { byHandle[easy] = newValue }
    }

    func add(_ stream: StreamConnection) { byID[stream.id] = stream }

    func remove(_ stream: StreamConnection) { byID[stream.id] = nil }

    func stir(_ stream: StreamConnection) { stirred.append(stream) }

    func takeStirred() -> [StreamConnection] {
        defer { stirred.removeAll() }
        return stirred
    }
}

extension LoopCore {
    package var streamCount: Int { streams.byID.count }

    package func stream(_ id: Int) -> StreamConnection? { streams.byID[id] }

    /// Connects to `peer`; the handler hears what becomes of it.
    ///
    /// - Parameters:
    ///   - secure: speak TLS from the first byte.
    ///   - judgesAddresses: has the handler judge each address (``StreamHandler/judge(address:)``).
    ///   - configure: sets time limits, proxies, certificates and the like.
    /// - Throws: ``CurlError`` for options that libcurl does not take; the handler is not called then.
    package func openStream(
        to peer: StreamPeer, secure: Bool = false, judgesAddresses: Bool = false, handler: any StreamHandler,
        configure: (inout EasyHandle) throws(CurlError) -> Void = { (_: inout EasyHandle) throws(CurlError) in }
    ) throws(CurlError) -> StreamConnection {
        let stream = try StreamConnection(id: makeID(), peer: peer, handler: handler, loop: self)
        try configure(&stream.easy)
        try stream.prepare(&stream.easy, secure: secure)
        if judgesAddresses { try stream.judgeAddresses() }
        try enter(stream.easy.raw, of: stream)
        streams.add(stream)
        adjustConnectionLimit()
        return stream
    }

    /// A handle of `stream` begins to connect.
    func enter(_ easy: UnsafeMutableRawPointer, of stream: StreamConnection) throws(CurlError) {
        try multi.add(easy)
        streams[easy] = stream
    }

    /// The connection of a stream's handle is closed.
    func leave(_ easy: UnsafeMutableRawPointer, of stream: StreamConnection) {
        streams[easy] = nil
        remove(easy, of: stream)
    }

    /// As ``leave(_:of:)``, for a handle that its stream has given up.
    func leave(_ handle: consuming EasyHandle) {
        streams[handle.raw] = nil
        let raw = handle.raw
        remove(raw, of: HandleOwner(handle))
    }

    func remove(_ stream: StreamConnection) {
        streams.remove(stream)
        adjustConnectionLimit()
    }

    /// libcurl counts streams among the connections it keeps, which must not cost exchanges their idle ones.
    private func adjustConnectionLimit() {
        // Two for each: while TLS starts there are two handles.
        multi.setMaximumIdleConnections(Self.idleConnections + 2 * streams.byID.count)
    }

    func runStirredStreams() {
        guard streams.areStirred else { return }
        for stream in streams.takeStirred() { stream.turn() }
    }

    func cancelStreams() {
        for stream in Array(streams.byID.values) { stream.cancel() }
    }
}
