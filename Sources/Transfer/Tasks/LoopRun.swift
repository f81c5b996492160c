/// The execution of a task on a loop, found there by the task's identifier. Called on the loop's thread.
protocol LoopRun: AnyObject {
    func start()
    /// Cancels the run on behalf of the user or the session.
    func cancel()
    /// Suspends the run, possibly before it has started.
    func suspend()
    /// Resumes the run after ``suspend()``.
    func resume()
}

/// A run whose checkpoints are confirmed.
protocol ConfirmableRun: LoopRun {
    /// Records that a checkpoint covering `count` bytes has been written.
    func confirm(_ count: Int64, of generation: String)
}

/// A run that gathers received bytes in memory for large writes.
protocol GatheringRun: LoopRun {
    /// Writes the gathered bytes to the part file.
    func flushGathered()
}

/// A run that uses connections beyond its first one.
protocol BorrowingRun: LoopRun {
    /// Notifies the run that the connection limit of `origin` has room.
    func mayBorrow(at origin: String)
}

/// A run of a stream, whose route may change.
protocol RoutedRun: LoopRun {
    /// Makes the run check whether the kernel now has a better route to the peer.
    func routesDidChange()
}
