import Curl

/// The questions to delegates.
extension Transaction {
    /// Asks the delegate, and continues with its answer if that is immediate.
    ///
    /// - Returns: whether the exchange whose callback is running goes on.
    func ask(_ pending: PendingQuestion) -> Bool {
        let (transaction, number) = (LoopReference(self, on: core), pending.number)
        let reply = Reply(otherwise: pending.question.fallback) { decision in
            transaction.perform { $0.answered(decision, number) }
        }
        switch pending.question {
        case .redirect(let head, let request, _):
            session.delegate.task(task, willPerformHTTPRedirection: head, newRequest: request) {
                reply.give(.redirect($0))
            }
        case .challenge(let demand, let head):
            let challenge = challenge(for: demand, in: head)
            session.delegate.task(task, didReceive: challenge) { disposition, credential in
                let isDefault = disposition == .performDefaultHandling
                let (disposition, credential) =
                    isDefault
                    ? TaskDelegate.defaultAnswer(challenge, credential: nil) : (disposition, credential)
                reply.give(.challenge(disposition, credential))
            }
        case .trust(let shown):
            guard let url else { return false }
            let challenge = AuthenticationChallenge(judging: shown, port: url.port, scheme: url.scheme)
            session.delegate.task(task, didReceive: challenge) { reply.give(.challenge($0, $1)) }
        case .response(let head): client.askDelegate(about: head) { reply.give(.response($0)) }
        }
        if let decision = reply.immediateDecision() { return perform(machine.answered(number, decision)) }
        return perform(machine.answerDelayed(number))
    }

    private func answered(_ decision: Decision, _ number: Int) {
        checkInvariants()
        perform(machine.answered(number, decision))
    }

    private func challenge(for demand: Authorization.Demand, in head: ResponseHead) -> AuthenticationChallenge {
        var challenge = AuthenticationChallenge(
            protectionSpace: demand.space, proposedCredential: proposal(for: demand),
            previousFailureCount: machine.authorization.failureCount(demand), failureResponse: head, serverTrust: nil)
        challenge.isFromOrigin =
            !demand.space.isProxy && (try? CurlURL(task.originalRequest.url))?.origin == url?.origin
        return challenge
    }

    /// Returns the credential to propose: the request's own, unless it is a token, which was sent already, or that of
    /// the URL of the server or the proxy, or else a stored one.
    private func proposal(for demand: Authorization.Demand) -> Credential? {
        if demand.space.isProxy, let url {
            let proxy = ProxyOptions(configuration: session.configuration, request: request, to: url)
            if let login = proxy.login { return login }
        } else if let url, let own = request.login(at: url), !own.isToken {
            return own
        }
        return session.configuration.credentialStorage.credential(for: demand.space)
    }

    /// Returns the criteria by which the server of an exchange is trusted.
    func trustOptions(for url: CurlURL) -> TrustOptions {
        var options = TrustOptions(for: url.host, port: url.port, of: task, request)
        options.asksTask = session.delegate.decidesOwnTrust(of: task)
        options.isLenient = options.mayForgive && machine.isLenient(at: url)
        return options
    }
}
