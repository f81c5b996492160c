import TaskModel

/// A map of a file in characters: the parts that are there, those that are there partly, the gaps, and `>` where a
/// connection receives.
struct SegmentMap {
    var width: Int
    var style: Terminal.Style

    /// Returns the map in lines of ``width`` characters; no line for an empty file.
    func lines(
        _ height: Int, _ segments: [LiveSegment], _ connections: [LiveConnection] = [], total: Int64
    ) -> [String] {
        guard total > 0, width > 0, height > 0 else { return [] }
        let whole = SegmentMap(width: width * height, style: style)
        var signs = Array(whole.line(segments, total: total) ?? "")
        for connection in connections where (0..<total).contains(connection.next) {
            let cell = Int(Double(connection.next) / Double(total) * Double(signs.count))
            signs[min(signs.count - 1, cell)] = ">"
        }
        return stride(from: 0, to: signs.count, by: width).map { String(signs[$0..<min(signs.count, $0 + width)]) }
    }

    /// Returns the map in one line.
    ///
    /// - Parameters:
    ///   - segments: the parts that are there, in ascending order.
    ///   - total: the size of the file.
    /// - Returns: `nil` for an empty file.
    func line(_ segments: [LiveSegment], total: Int64) -> String? {
        guard total > 0, width > 0 else { return nil }
        let marks = style.unicode ? (full: "█", part: "▒", none: "░") : (full: "#", part: "+", none: ".")
        var line = ""
        var index = 0
        for cell in 0..<width {
            let bounds = (first: Self.offset(cell, of: width, total), end: Self.offset(cell + 1, of: width, total))
            while index < segments.count, segments[index].end <= bounds.first { index += 1 }
            var present: Int64 = 0
            for segment in segments[index...] {
                guard segment.first < bounds.end else { break }
                present = present.addingClamped(
                    max(0, min(segment.end, bounds.end).subtractingClamped(max(segment.first, bounds.first))))
            }
            // A file with fewer bytes than cells repeats its bytes.
            if bounds.first == bounds.end {
                let isThere = segments.contains { $0.first <= bounds.first && bounds.first < $0.end }
                line += isThere ? marks.full : marks.none
            } else {
                line += present == 0 ? marks.none : present == bounds.end - bounds.first ? marks.full : marks.part
            }
        }
        return line
    }

    /// Returns the offset at which a cell begins.
    private static func offset(_ cell: Int, of cells: Int, _ total: Int64) -> Int64 {
        let (share, rest) = total.quotientAndRemainder(dividingBy: Int64(cells))
        return share * Int64(cell) + rest * Int64(cell) / Int64(cells)
    }
}

extension TaskDetail {
    /// The parts of the file that are received or sent; `nil` for a task that does not run.
    var transferredSegments: [LiveSegment]? {
        guard let live else { return nil }
        guard status.kind == .upload else { return live.segments }
        // An upload sends the file from its beginning on.
        return status.bytesDone > 0 ? [LiveSegment(first: 0, end: status.bytesDone)] : []
    }
}
