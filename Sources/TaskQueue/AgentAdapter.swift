import HTTPTypes
import Transfer

/// Says on every request who asks, unless the task says it itself.
struct AgentAdapter: RequestAdapter {
    let agent: String

    nonisolated(nonsending) func adapt(_ request: TransferRequest) async throws(TransferError) -> TransferRequest {
        var adapted = request
        if adapted.headerFields[.userAgent] == nil { adapted.headerFields[.userAgent] = agent }
        if adapted.headerFields[.accept] == nil { adapted.headerFields[.accept] = "*/*" }
        return adapted
    }
}
