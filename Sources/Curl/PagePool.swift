import Glibc
import Synchronization

/// A pool of memory pages for the smallest buffers of one loop, mapped in groups apart from the heap.
///
/// Thousands of slow transfers take and return such a buffer every few seconds. In the heap, each returned buffer would
/// leave a hole between the other memory of the transfers. A returned page costs no memory until it is taken again.
///
/// Used on the loop's thread, except for ``abandon(_:)``.
final class PagePool {
    /// The size in bytes of the pages that are handed out.
    static let pageSize = 4 << 10
    /// The size in bytes of the pages that are mapped together.
    static let groupSize = 1 << 20

    private var groups: [UnsafeMutableRawBufferPointer] = []
    /// The pages that are not in use.
    private var unused: [UnsafeMutableRawPointer] = []
    /// Whether a page is in use.
    private var isInUse: Bool { unused.count < groups.count * (Self.groupSize / Self.pageSize) }
    /// The addresses of the pages that other threads have returned.
    private let abandoned = Mutex<[UInt]>([])
    /// Whether a page can be returned to the system by itself. Elsewhere a page of the system holds several of these.
    private let isSystemPage = sysconf(Int32(_SC_PAGESIZE)) == PagePool.pageSize

    init() {}

    deinit {
        takeBackAbandoned()
        // A page in use may still be written from on another thread.
        if isInUse { return }
        for group in groups { AnonymousMemory.unmap(group) }
    }

    /// Takes a page.
    ///
    /// - Returns: `nil` if the system has no memory.
    func acquire() -> UnsafeMutableRawBufferPointer? {
        if unused.isEmpty { takeBackAbandoned() }
        if unused.isEmpty { mapGroup() }
        guard let page = unused.popLast() else { return nil }
        return UnsafeMutableRawBufferPointer(start: page, count: Self.pageSize)
    }

    /// Returns a page, whose memory goes back to the system.
    ///
    /// - Returns: whether the memory is a page of this pool.
    func release(_ page: UnsafeMutableRawBufferPointer) -> Bool {
        guard let address = page.baseAddress, contains(address) else { return false }
        putBack(address)
        return true
    }

    /// Returns a page on any thread. It is taken again later.
    func abandon(_ page: UnsafeMutableRawBufferPointer) {
        let address = UInt(bitPattern: page.baseAddress)
        abandoned.withLock { $0.append(address) }
    }

    private func contains(_ address: UnsafeMutableRawPointer) -> Bool {
        groups.contains { group in group.baseAddress.map { $0 <= address && address < $0 + group.count } ?? false }
    }

    private func putBack(_ page: UnsafeMutableRawPointer) {
        if isSystemPage {
            _ = madvise(page, Self.pageSize, MADV_DONTNEED)  // after a failure the page keeps its memory
        }
        unused.append(page)
    }

    private func takeBackAbandoned() {
        let addresses = abandoned.withLock { addresses in
            defer { addresses = [] }
            return addresses
        }
        for address in addresses {
            guard let page = UnsafeMutableRawPointer(bitPattern: address) else { continue }
            if contains(page) { putBack(page) } else { page.deallocate() }
        }
    }

    private func mapGroup() {
        guard let group = AnonymousMemory.map(Self.groupSize), let start = group.baseAddress else { return }
        _ = madvise(start, group.count, MADV_NOHUGEPAGE)  // it fails where there are no huge pages
        groups.append(group)
        for offset in stride(from: Self.groupSize - Self.pageSize, through: 0, by: -Self.pageSize) {
            unused.append(start + offset)
        }
    }
}
