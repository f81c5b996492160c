/// The execution of a task on a loop, found there by the task's identifier. Called on the loop's thread.
protocol LoopRun: AnyObject {
    func start()
    /// Cancels the run on behalf of the user or the session.
    func cancel()
    /// Suspends the run, possibly before it has started.
    func suspend()
    /// Resumes the run after ``suspend()``.
    func goOn()
}

/// A run whose checkpoints are confirmed.
protocol ConfirmableRun: LoopRun {
    /// Records that a checkpoint covering `count` bytes has been written.
    func confirm(_ count: Int64, of generation: String)
}

/// A run that downloads a file.
protocol FileRun: LoopRun {
    var file: DownloadFile { get }
    /// Writes the bytes that its connections have buffered.
    func flushGathered()
    /// Notifies the run that the disk has written queued blocks, or that a write failed.
    func diskDidMove(_ error: TransferError?)
}

/// A run that sends requests and receives responses.
protocol TransactionRun: LoopRun {
    /// Returns the transaction with the given number while it is active.
    func transaction(_ number: Int) -> Transaction?
}

/// A run with one transaction at a time.
protocol SingleTransactionRun: TransactionRun {
    var transaction: Transaction { get }
}

extension SingleTransactionRun {
    func transaction(_ number: Int) -> Transaction? { transaction }
    func cancel() { transaction.cancel() }
    func suspend() { transaction.pause(.suspended) }
    func goOn() { transaction.resume(.suspended) }
}
