extension TransferProgress: CustomStringConvertible {
    /// The description of the ``snapshot``.
    public var description: String { snapshot.description }
}

extension TransferProgress.Snapshot: CustomStringConvertible {
    /// The counts and the activity, as in `12 of 24 bytes (50 %), transferring`.
    public var description: String {
        let share = totalBytes == nil ? nil : fractionCompleted.map { " (\(Int(Swift.max(0, $0) * 100)) %)" }
        return "\(ReadableText.bytes(completedBytes, of: totalBytes))\(share ?? ""), \(phase)"
    }
}
