/// The sending of a task's body, with its progress and callbacks.
extension BodySender {
    /// Writes the next bytes of the body of `task` to `space`, and reports them.
    ///
    /// - Throws: if the bytes differ from what was announced; the request must not be completed then.
    /// - Returns: the number of bytes; `nil` if there are none yet.
    func fill(_ space: UnsafeMutableRawBufferPointer, of task: DataTask) throws(TransferError) -> Int? {
        guard let count = try fill(space) else { return nil }
        task.progress.transferred(count)
        task.progress.setCompleted(sent)
        task.session.callbacks.task(task, didSendBodyData: Int64(count), total: sent, expected: length)
        return count
    }

    /// Prepares to send the body of `task` again from `offset`, and sets its progress back.
    ///
    /// - Returns: whether that is possible.
    func rewind(to offset: Int64, of task: DataTask) -> Bool {
        task.progress.setCompleted(offset)
        return rewind(to: offset)
    }
}
