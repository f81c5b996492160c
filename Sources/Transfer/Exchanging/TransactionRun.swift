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
    func resume() { transaction.resume(.suspended) }
}
