/// The sending of a task's body, which is reported to its progress and delegate.
extension BodySender {
    /// Writes the next bytes of the body of `task` to `space`, and reports them.
    ///
    /// - Parameter progress: the progress that counts them; `nil` for a body that no one observes.
    /// - Throws: if the bytes differ from what was announced; the request must not be completed then.
    /// - Returns: the number of bytes; `nil` if there are none yet.
    func fill(
        _ space: UnsafeMutableRawBufferPointer, of task: any LoopTask, progress: TransferProgress?
    ) throws(TransferError) -> Int? {
        guard let count = try fill(space) else { return nil }
        task.core.bodySent(sent)
        if let progress {
            progress.transferred(count)
            progress.setCompleted(sent)
        }
        task.session.delegate.task(task, didSendBodyData: Int64(count), total: sent, expected: length)
        return count
    }
}
