import Synchronization

/// Responses in memory, by URL: the one used the longest ago goes first.
///
/// It stores what it is given; ``CacheJudgement`` says what it may be given.
public final class ResponseCache: Sendable {
    /// Bytes of all responses together.
    public let capacity: Int
    /// Bytes of one response; a larger one is not kept, since it would drive out too many others.
    public var maximumResponseSize: Int { capacity / 8 }

    private let list: Mutex<RecentList>

    /// - Parameter capacity: bytes, heads and bookkeeping included; 0 keeps nothing.
    public init(capacity: Int) {
        self.capacity = max(0, capacity)
        list = Mutex(RecentList())
    }

    /// Bytes in use.
    public var size: Int { list.withLock { $0.size } }
    /// Answers that are kept.
    public var count: Int { list.withLock { $0.count } }

    /// What is stored for a GET of this URL, without its fragment. Counts as a use.
    public func response(for url: String) -> CachedResponse? { list.withLock { $0.use(url) } }

    /// Stores a response in place of the one of this URL.
    ///
    /// - Returns: `false` where it is too large; what was there is removed all the same, since it is no longer right.
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

    /// Forgets the answer for `url`, where there is one.
    public func remove(for url: String) { list.withLock { $0.remove(url) } }

    /// Forgets every answer.
    public func removeAll() { list.withLock { $0 = RecentList() } }
}

/// Responses from the one used last to the one used the longest ago: a doubly linked list in an array, so that every
/// step takes the same time however many there are.
private struct RecentList {
    private struct Node {
        var url: String
        /// `nil`: the place is free.
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
