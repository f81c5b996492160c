/// The events of requests, for the stream of events and for monitors.
extension Session {
    func requestDidCreate(_ request: Request) { monitors?.notify { $0.requestDidCreate(request) } }

    func requestDidResume(_ request: Request) {
        events.send(.didResume(request))
        monitors?.notify { $0.requestDidResume(request) }
    }

    func requestDidSuspend(_ request: Request) {
        events.send(.didSuspend(request))
        monitors?.notify { $0.requestDidSuspend(request) }
    }

    func requestDidCancel(_ request: Request) {
        events.send(.didCancel(request))
        monitors?.notify { $0.requestDidCancel(request) }
    }

    func request(_ request: Request, willRetryAfter error: TransferError) {
        events.send(.willRetry(request, error))
        monitors?.notify { $0.request(request, willRetryAfter: error) }
    }

    func request(_ request: Request, didCompleteWith error: TransferError?) {
        events.send(.didComplete(request, error))
        monitors?.notify { $0.request(request, didCompleteWith: error) }
    }
}
