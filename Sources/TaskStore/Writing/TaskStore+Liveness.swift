extension TaskStore {
    /// Returns once the writer connection has finished its present work and taken up more, or the store is closed. If
    /// the disk hangs, this does not return.
    package func writerTurn() async {
        _ = try? await writes.performAlone { _ in }  // a store that refuses changes turns over all the same
    }
}
