extension Unicode.Scalar {
    /// Whether the scalar is invisible or changes how its neighbours are displayed. Covers controls, line separators,
    /// bidirectional marks, and scalars without a glyph of their own (Default_Ignorable_Code_Point, UAX #44), such as
    /// joiners, variation selectors and fillers.
    package var isHidden: Bool {
        if value < 0x7F { return value < 0x20 }
        if properties.isDefaultIgnorableCodePoint { return true }
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: return true
        // Prepended marks (Prepended_Concatenation_Mark) are format characters, but they have a visible glyph that
        // spans the following digits or letters.
        case .format: return !Self.spanning.contains(value)
        // U+2800 BRAILLE PATTERN BLANK is visually blank, but its general category is not a space.
        default: return value == 0x2800
        }
    }

    private static let spanning: Set<UInt32> = [
        0x0600, 0x0601, 0x0602, 0x0603, 0x0604, 0x0605, 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, 0x110BD, 0x110CD,
    ]
}
