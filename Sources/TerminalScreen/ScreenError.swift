/// A reason why a terminal cannot show a full screen.
public enum ScreenError: Error, Sendable, Equatable {
    /// Standard input or standard output is not a terminal.
    case noTerminal
    /// A call to the system failed with this `errno`.
    case unusable(errno: Int32)
}
