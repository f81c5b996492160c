import TaskModel

/// A picture of the parts of a file that are there, one sign for each equal share of the file.
struct SegmentMap {
    var segments: [LiveSegment]
    var connections: [LiveConnection]
    var total: Int64
    var unicode: Bool

    /// Returns the signs: full, partly there, nothing there, and `>` where a connection receives.
    func signs(_ count: Int) -> [Character] {
        guard total > 0, count > 0 else { return [] }
        var shares = [Double](repeating: 0, count: count)
        let width = Double(total) / Double(count)
        for segment in segments {
            let first = Double(min(max(0, segment.first), total)) / width
            let end = Double(min(max(0, segment.end), total)) / width
            guard end > first else { continue }
            for index in max(0, Int(first))...min(count - 1, max(0, Int(end))) {
                shares[index] += max(0, min(end, Double(index + 1)) - max(first, Double(index)))
            }
        }
        var signs = shares.map { share -> Character in
            if share > 0.999 { return unicode ? "█" : "#" }
            if share > 0.001 { return unicode ? "▒" : "+" }
            return unicode ? "░" : "."
        }
        for connection in connections where (0..<total).contains(connection.next) {
            signs[min(count - 1, Int(Double(connection.next) / width))] = ">"
        }
        return signs
    }

    /// Returns the picture in lines of `width` signs.
    func lines(width: Int, height: Int) -> [String] {
        let signs = signs(max(1, width) * max(1, height))
        return stride(from: 0, to: signs.count, by: max(1, width)).map {
            String(signs[$0..<min(signs.count, $0 + max(1, width))])
        }
    }
}
