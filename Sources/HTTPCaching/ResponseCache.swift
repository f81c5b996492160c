import Synchronization

/// An in-memory cache of responses by URL. It evicts the least recently used response first.
///
/// The cache stores whatever it receives; ``CacheEvaluation`` decides what may be stored.
public final class ResponseCache: Sendable {
    /// The maximum size of all responses together, in bytes.
    public let capacity: Int
    /// The maximum size of one response, in bytes. A larger one is not stored, since it would evict too many others.
    public var maximumResponseSize: Int { capacity / 8 }

    private let list: Mutex<RecentList>

    /// Creates an empty cache.
    ///
    /// - Parameter capacity: the capacity in bytes, heads and bookkeeping included; 0 disables the cache.
    public init(capacity: Int) {
        self.capacity = max(0, capacity)
        list = Mutex(RecentList())
    }

    /// The number of bytes in use.
    public var size: Int { list.withLock { $0.size } }
    /// The number of stored responses.
    public var count: Int { list.withLock { $0.count } }

    /// Returns the stored response to a GET of this URL, which has no fragment. It counts as a use.
    public func response(for url: String) -> CachedResponse? { list.withLock { $0.use(url) } }

    /// Stores a response and replaces the one stored for this URL.
    ///
    /// - Returns: `false` if the response is too large. The previous response is removed even then, since it is
    ///   outdated.
    @discardableResult
    public func store(_ response: CachedResponse, for url: String) -> Bool {
        let size = response.size + 2 * url.utf8.count
        let isKept = size <= maximumResponseSize
        list.withLock { list in
            list.remove(url)
            guard isKept else { return }
            list.insert(response, size: size, for: url)
            while list.size > capacity { list.removeOldest() }
        }
        return isKept
    }

    /// Removes the response for `url`, if there is one.
    public func remove(for url: String) { list.withLock { $0.remove(url) } }

    /// Removes all responses.
    public func removeAll() { list.withLock { $0 = RecentList() } }
}

/// The responses ordered by their last use, newest first. It is a doubly linked list in an array: each operation takes
/// constant time whatever the number of responses.
private struct RecentList {
    private struct Node {
        var url: String
        /// `nil` in a free slot.
        var response: CachedResponse?
        var size: Int
        var newer: Int?
        var older: Int?
    }

    private var nodes: [Node] = []
    private var free: [Int] = []
    private var places: [String: Int] = [:]
    private var newest: Int?
    private var oldest: Int?
    private(set) var size = 0

    var count: Int { places.count }

    mutating func use(_ url: String) -> CachedResponse? {
        guard let place = places[url] else { return nil }
        unlink(place)
        linkFirst(place)
        return nodes[place].response
    }

    mutating func insert(_ response: CachedResponse, size: Int, for url: String) {
        let node = Node(url: url, response: response, size: size)
        let place: Int
        if let reused = free.popLast() {
            place = reused
            nodes[place] = node
        } else {
            place = nodes.count
            nodes.append(node)
        }
        places[url] = place
        self.size += size
        linkFirst(place)
    }

    mutating func remove(_ url: String) {
        guard let place = places.removeValue(forKey: url) else { return }
        unlink(place)
        size -= nodes[place].size
        nodes[place] = Node(url: "", response: nil, size: 0)
        free.append(place)
    }

    mutating func removeOldest() {
        if let oldest { remove(nodes[oldest].url) }
    }

    private mutating func linkFirst(_ place: Int) {
        nodes[place].newer = nil
        nodes[place].older = newest
        if let newest { nodes[newest].newer = place } else { oldest = place }
        newest = place
    }

    private mutating func unlink(_ place: Int) {
        let (newer, older) = (nodes[place].newer, nodes[place].older)
        if let newer { nodes[newer].older = older } else { newest = older }
        if let older { nodes[older].newer = newer } else { oldest = newer }
    }
}
