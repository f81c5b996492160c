/// Who works for a task on a loop, and is found there by its identifier. Called on the loop's thread.
protocol LoopRun: AnyObject {
    func start()
    /// A person or the session wants it to end.
    func cancel()
    /// It is to stand still; possibly before it starts.
    func suspend()
    /// It is to go on after ``suspend()``.
    func goOn()
}

/// One whose checkpoints are confirmed.
protocol ConfirmableRun: LoopRun {
    /// A checkpoint that covers `count` bytes has been written down.
    func confirm(_ count: Int64)
}

/// One that brings a file.
protocol FileRun: LoopRun {
    var file: DownloadFile { get }
    /// Hands the bytes that its connections have gathered to the disk.
    func flushGathered()
    /// The disk has taken what it was handed, or has failed.
    func diskDidMove(_ error: TransferError?)
}

/// One that asks and is answered.
protocol TransactionRun: LoopRun {
    /// The one of this number, while it is at work.
    func transaction(_ number: Int) -> Transaction?
}

/// One that asks one question at a time.
protocol SingleTransactionRun: TransactionRun {
    var transaction: Transaction { get }
}

extension SingleTransactionRun {
    func transaction(_ number: Int) -> Transaction? { transaction }
    func cancel() { transaction.cancel() }
    func suspend() { transaction.pause(.suspended) }
    func goOn() { transaction.resume(.suspended) }
}
