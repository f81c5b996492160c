import FoundationEssentials
import Glibc

/// Returns the number of the process's descriptors that are open beneath `path`.
package func openDescriptors(beneath path: String) -> Int {
    // All descriptors are listed: other tests of this process may hold thousands.
    let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    return descriptors.count { descriptor in
        var target = [CChar](repeating: 0, count: 512)
        let count = readlink("/proc/self/fd/\(descriptor)", &target, target.count)
        return count > 0
            && String(decoding: target[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self).hasPrefix(path)
    }
}
