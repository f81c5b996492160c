/// The size of a terminal in columns and rows.
public struct ScreenSize: Sendable, Equatable {
    public var columns: Int
    public var rows: Int

    public init(columns: Int, rows: Int) {
        self.columns = columns
        self.rows = rows
    }
}

/// A picture for the whole screen.
public struct Frame: Sendable, Equatable {
    public var lines: [StyledLine]
    /// The cursor's column and row from 0; `nil` hides it.
    public var cursor: Cursor?

    public struct Cursor: Sendable, Equatable {
        public var column: Int
        public var row: Int

        public init(column: Int, row: Int) {
            self.column = column
            self.row = row
        }
    }

    public init(lines: [StyledLine], cursor: Cursor? = nil) {
        self.lines = lines
        self.cursor = cursor
    }
}

/// The difference between the picture on the screen and the next one.
public struct FrameDiff: Sendable {
    private let allowsColour: Bool
    /// The encoded lines on the screen; `nil` if its content is unknown.
    private var shown: [[UInt8]]?
    private var size = ScreenSize(columns: 0, rows: 0)
    private var cursor: Frame.Cursor?

    public init(allowsColour: Bool) { self.allowsColour = allowsColour }

    /// Forgets what the screen shows, so that the next picture is drawn as a whole.
    public mutating func invalidate() { shown = nil }

    /// Returns the bytes that turn the screen into `frame`; none if it already shows it. Lines beyond the last row are
    /// dropped.
    public mutating func update(to frame: Frame, size: ScreenSize) -> [UInt8] {
        let lines = (0..<max(0, size.rows)).map { row in
            row < frame.lines.count ? frame.lines[row].encoded(allowsColour: allowsColour, columns: size.columns) : []
        }
        var bytes: [UInt8] = []
        let isNew = shown == nil || size != self.size
        // CAN ends a sequence that was cut off by an incomplete write.
        if isNew { bytes += Array("\u{18}\u{1B}[0m\u{1B}[H\u{1B}[2J".utf8) }
        let old = isNew ? [] : shown ?? []
        for (row, line) in lines.enumerated() where row < old.count ? old[row] != line : !line.isEmpty {
            // Erase before writing: after the last column, some terminals would erase the last character.
            bytes += Array("\u{1B}[\(row + 1);1H\u{1B}[K".utf8)
            bytes += line
        }
        if !bytes.isEmpty || frame.cursor != cursor {
            if let place = frame.cursor {
                let column = min(max(0, place.column), max(0, size.columns - 1))
                let row = min(max(0, place.row), max(0, size.rows - 1))
                bytes += Array("\u{1B}[\(row + 1);\(column + 1)H\u{1B}[?25h".utf8)
            } else if isNew || cursor != nil {
                bytes += Array("\u{1B}[?25l".utf8)
            }
        }
        shown = lines
        self.size = size
        cursor = frame.cursor
        return bytes
    }
}
