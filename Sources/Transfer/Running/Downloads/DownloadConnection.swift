/// The exchange of one connection of a download, and what its bytes pass through on their way to the file.
///
/// Lives on its loop's thread. Its state is a ``SegmentConnection``.
final class DownloadConnection {
    let transaction: Transaction
    let writer: BodyWriter
    /// Undoes the coding of the body under way.
    var decoder: BodyDecoder?
    /// The head by which the destination will be decided, once the first byte has been validated.
    var undecided: ResourceMetadata?
    /// Whether the first byte of the body is validated: the head's type matters only where there is a body.
    var validatesFirstByte = false

    init(_ transaction: Transaction, file: DownloadFile) {
        self.transaction = transaction
        writer = BodyWriter(file: file)
    }

    var number: Int { transaction.number }

    /// Closes it without an event. To be called from outside libcurl's callbacks.
    func close() {
        transaction.cancel()
        writer.release()
    }
}
