import HTTPTypes
import Transfer

/// A request adapter that sets the `User-Agent` and `Accept` headers, unless the task sets them.
struct AgentAdapter: RequestAdapter {
    let agent: String

    nonisolated(nonsending) func adapt(_ request: TransferRequest) async throws(TransferError) -> TransferRequest {
        var adapted = request
        if adapted.headerFields[.userAgent] == nil { adapted.headerFields[.userAgent] = agent }
        if adapted.headerFields[.accept] == nil { adapted.headerFields[.accept] = "*/*" }
        return adapted
    }
}
