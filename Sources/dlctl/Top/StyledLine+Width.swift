import TerminalScreen

extension StyledLine {
    /// The width in columns.
    var width: Int { spans.reduce(0) { ($1.column ?? $0) + DisplayWidth.of($1.text) } }

    /// Returns this line cut to `width` columns.
    func fitted(_ width: Int) -> StyledLine {
        guard self.width > width else { return self }
        var line = StyledLine()
        for span in spans {
            let text = DisplayWidth.fit(span.text, width - (span.column ?? line.width))
            line.append(text, span.style, at: span.column)
            if text != span.text { break }
        }
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
