import TerminalScreen

extension StyledLine {
    /// The width in columns.
    var width: Int { spans.reduce(0) { $0 + DisplayWidth.of($1.text) } }

    /// Returns this line cut to `width` columns.
    func fitted(_ width: Int) -> StyledLine {
        guard self.width > width else { return self }
        var line = StyledLine()
        var left = width
        for span in spans where left > 0 {
            let text = DisplayWidth.fit(span.text, left)
            line.append(text, span.style)
            left -= DisplayWidth.of(text)
            if text != span.text { break }
        }
        return line
    }

    /// Returns this line with spaces up to `width` columns.
    func padded(_ width: Int) -> StyledLine {
        var line = self
        line.append(String(repeating: " ", count: max(0, width - self.width)))
        return line
    }

    /// Returns a line with one part at each end. If both do not fit, the right one is left out.
    static func ends(_ left: StyledLine, _ right: StyledLine, width: Int) -> StyledLine {
        let gap = width - left.width - right.width
        guard gap >= 2 else { return left.fitted(width) }
        var line = left
        line.append(String(repeating: " ", count: gap))
        line.append(right)
        return line
    }
}
