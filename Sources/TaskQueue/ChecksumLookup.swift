import FoundationEssentials
import TaskFiles
import TaskModel
import Transfer

/// A list of checksums on a server, such as `SHA256SUMS`, in which a task's file is looked up before it is fetched.
struct ChecksumLookup: Sendable {
    let request: DataRequest
    private let url: String

    /// - Parameters:
    ///   - task: the task's own request: what proves who asks goes along to its own server alone.
    ///   - list: the URL of the list.
    init(of task: TransferRequest, in list: String, manager: SessionManager) {
        var request = task.redirected(to: list)
        request.maximumBodySize = Int64(ChecksumList.Limit.bytes)
        self.request = manager.request(request).validate(statusCode: Array(200..<300))
        url = task.url
    }

    /// - Parameter finished: is told the checksum, or why there is none, on a thread of the engine's.
    func start(_ finished: @escaping @Sendable (Result<Checksum, TransferError>) -> Void) {
        request.response(queue: .inline) { [url] response in
            do throws(TransferError) {
                let body = try response.result.get()
                finished(.success(try Self.find(url, in: body.map { Array($0) } ?? [])))
            } catch {
                var error = error
                error.message = "the list of checksums: \(error.message)"
                finished(.failure(error))
            }
        }
        request.resume()
    }

    static func find(_ url: String, in list: [UInt8]) throws(TransferError) -> Checksum {
        do throws(FileError) {
            return try ChecksumList(parsing: list, file: "it").checksum(for: FileName.pathFromURL(url))
        } catch {
            throw TransferError(.invalidRequest, error.message)
        }
    }
}
