/// An input from the terminal's keyboard.
public enum Key: Sendable, Equatable {
    case character(Character)
    /// A character with Ctrl, as the letter in lower case: `c` for Ctrl-C.
    case control(Character)
    /// A character with Alt.
    case alt(Character)
    case enter, tab, backTab, backspace, escape
    case up, down, left, right, home, end, pageUp, pageDown, insert, delete
    /// The function key with this number, from 1.
    case function(Int)
    /// Text that the terminal marked as pasted (bracketed paste). It is never a command.
    case paste(String)
}
