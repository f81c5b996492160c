/// The type of a field's value in JSON.
package enum FieldJSON: Sendable, Equatable {
    case text
    case texts
    case flag
    /// A whole number.
    case integer
    case numbers
    /// A text of this list.
    case words([String])
    /// A whole number or `auto`.
    case connections
    /// The object of ``PieceHashes``.
    case pieceHashes

    static func words<Word: CaseIterable & RawRepresentable<String>>(of _: Word.Type) -> FieldJSON {
        .words(Word.allCases.map(\.rawValue))
    }
}
