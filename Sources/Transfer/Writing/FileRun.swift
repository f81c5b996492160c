/// A run that downloads a file.
protocol FileRun: DownloadTaskRun {
    /// Notifies the run that the disk has written queued blocks, or that a write failed.
    func diskDidMove(_ error: TransferError?)
}
