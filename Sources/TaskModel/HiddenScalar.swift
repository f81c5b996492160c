extension Unicode.Scalar {
    /// Whether nobody sees it, or it changes how what is around it is seen: controls, separators of lines, marks that
    /// turn the direction of writing, and what has no picture of its own (Default_Ignorable_Code_Point, UAX #44), joiners,
    /// variation selectors and fillers among them.
    package var isHidden: Bool {
        if value < 0x7F { return value < 0x20 }
        if properties.isDefaultIgnorableCodePoint { return true }
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: return true
        // Signs that stand over the digits or letters that follow have a picture, although they are format characters
        // (Prepended_Concatenation_Mark).
        case .format: return !Self.spanning.contains(value)
        // BRAILLE PATTERN BLANK is a letter's width of nothing, and no space.
        default: return value == 0x2800
        }
    }

    private static let spanning: Set<UInt32> = [
        0x0600, 0x0601, 0x0602, 0x0603, 0x0604, 0x0605, 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, 0x110BD, 0x110CD,
    ]
}
