/// A spelling suggestion: finds the known word that a user most likely meant.
public enum NearestWord {
    /// Returns the known word with the smallest edit distance. The distance is limited, so that only likely typing
    /// errors match.
    ///
    /// - Returns: `nil` where no word is within a distance of a third of the word's length plus one.
    public static func to(_ word: String, among known: some Sequence<String>) -> String? {
        let allowed = max(1, word.count / 3 + 1)
        return known.map { (word: $0, distance: distance(word, $0)) }
            .filter { $0.distance <= allowed }
            .min { ($0.distance, $0.word) < ($1.distance, $1.word) }?.word
    }

    /// Returns the optimal string alignment distance. An insertion, deletion, substitution or transposition of
    /// neighbours costs one. Ignores case; compares the first 64 bytes.
    static func distance(_ left: String, _ right: String) -> Int {
        let a = Array(left.lowercased().utf8.prefix(64))
        let b = Array(right.lowercased().utf8.prefix(64))
        guard !a.isEmpty, !b.isEmpty else { return max(a.count, b.count) }
        var rows = [[Int]](repeating: [Int](repeating: 0, count: b.count + 1), count: a.count + 1)
        for i in 0...a.count { rows[i][0] = i }
        for j in 0...b.count { rows[0][j] = j }
        for i in 1...a.count {
            for j in 1...b.count {
                let cost = a[i - 1] == b[j - 1] ? 0 : 1
                rows[i][j] = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + cost)
                if i > 1, j > 1, a[i - 1] == b[j - 2], a[i - 2] == b[j - 1] {
                    rows[i][j] = min(rows[i][j], rows[i - 2][j - 2] + 1)
                }
            }
        }
        return rows[a.count][b.count]
    }
}
