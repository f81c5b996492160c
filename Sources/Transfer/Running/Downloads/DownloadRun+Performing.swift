import Curl
import HTTPTypes

/// The actions of the state machine.
extension DownloadRun {
    func perform(_ action: DownloadAction) {
        if isEnded { return }
        switch action {
        case .none: break
        case .send(let number): connection(number)?.transaction.start()
        case .flush(let number, let continuation):
            guard let connection = connection(number), flush(connection) else { return }
            perform(machine.flushed(number, continuation, facts()))
        case .delayRequest(let number, let milliseconds):
            timers.stopRequestDelay(number, core)
            timers.requestDelays[number] = core.after(milliseconds: milliseconds) { [unowned self] in
                timers.requestDelays[number] = nil
                perform(machine.delayEnded(number, facts()))
                checkInvariants("rest")
            }
        case .wait(let number, let milliseconds):
            timers.wait = core.after(milliseconds: milliseconds) { [unowned self] in
                timers.wait = nil
                perform(machine.waitEnded(number, facts()))
                checkInvariants("wait")
            }
        case .borrow(let wish):
            let origin =
                wish.like.flatMap { connection($0)?.transaction.url?.origin }
                ?? (try? CurlURL(machine.sources[wish.source].request.url).origin)
            if let other = wish.like, let origin,
                let time = lines.singleService(at: origin, now: MonotonicTime.now().milliseconds)
            {
                machine.singleServiceRemembered(by: other, until: time)
                return perform(machine.limitAnswered(wish, isGranted: false, facts()))
            }
            // A connection that waits for the turn of its request would keep bytes from those that receive.
            let pacer = session.resources.requestPacer
            let isGranted =
                origin.map { pacer.isFree($0) && borrowed.borrow(wish.number, at: $0) } ?? false
            perform(machine.limitAnswered(wish, isGranted: isGranted, facts()))
        case .rememberSingleService(let number):
            guard let origin = connection(number)?.transaction.url?.origin else { return }
            let time = lines.recordSingleService(at: origin, now: MonotonicTime.now().milliseconds)
            machine.singleServiceRemembered(by: number, until: time)
        case .giveBack(let number): borrowed.giveBack(number, at: nil)
        case .open(let wish): open(wish)
        case .grow(let target): perform(machine.grow(to: target, facts()))
        case .close(let number): close(number)
        case .closeOthers(let number): closeAll(but: number)
        case .replace(let old, let new, let source, let isJoining):
            replace(old, by: new, at: source, isJoining: isJoining)
        case .interrupt(let number): connection(number)?.transaction.cancel()
        case .requestOwnURL(let number):
            guard let source = machine[number]?.source else { return }
            connection(number)?.transaction.restart(from: machine.sources[source].request)
        case .tick(let milliseconds): startTicking(milliseconds)
        case .restart(let number, let reason):
            guard let connection = connection(number) else { return }
            if let reason { dropPart(for: connection, reason) }
            timers.stopTick(core)
            timers.stopRequestDelay(number, core)
            connection.transaction.isQuiet = false
        case .finish(let number): finish(number)
        case .fail(let error): fail(error)
        case .sequence(let actions): for action in actions { perform(action) }
        }
    }

    /// Drops the part: the body that `connection` brings is the first of it.
    ///
    /// - Parameter reason: reported where the part holds bytes.
    func dropPart(for connection: DownloadConnection, _ reason: String) {
        if file.count > 0 { session.delegate.downloadTask(task, didRestartBecause: reason) }
        connection.writer.drop()
        file.startOver()
        timers.stopTick(core)
    }

    /// Writes what a connection has gathered.
    ///
    /// - Returns: `false` if the write failed and the failure was handled.
    func flush(_ connection: DownloadConnection) -> Bool {
        do throws(TransferError) {
            try connection.writer.flush()
            return true
        } catch {
            perform(machine.diskFailed(connection.number, error, facts()))
            return false
        }
    }

    // MARK: Connections

    private func open(_ wish: ConnectionRequest) {
        guard let other = connection(wish.like ?? wish.beside) else { return }
        let transaction =
            wish.like == nil
            ? Transaction(
                machine.sources[wish.source].request, beside: other.transaction, number: wish.number, client: self)
            : Transaction(following: other.transaction, number: wish.number, client: self)
        add(transaction)
        task.progress.setConnections(connections.count)
    }

    private func add(_ transaction: Transaction) {
        connections.append(DownloadConnection(transaction, file: file))
        if machine.isSuspended { transaction.pause(.suspended) }
    }

    private func close(_ number: Int) {
        guard let index = connections.firstIndex(where: { $0.number == number }) else { return }
        let connection = connections.remove(at: index)
        let origin = connection.transaction.url?.origin
        connection.close()
        timers.stopRequestDelay(number, core)
        borrowed.giveBack(number, at: origin)
        task.progress.setConnections(connections.count)
    }

    private func closeAll(but number: Int?) {
        let others = connections.filter { $0.number != number }
        connections.removeAll { $0.number != number }
        for other in others {
            other.close()
            timers.stopRequestDelay(other.number, core)
        }
        borrowed.giveBackAll()
        task.progress.setConnections(connections.count)
    }

    private func replace(_ old: Int, by new: Int, at source: Int, isJoining: Bool) {
        guard let index = connections.firstIndex(where: { $0.number == old }) else { return }
        let connection = connections.remove(at: index)
        let transaction = Transaction(
            machine.sources[source].request, beside: connection.transaction, number: new, client: self)
        add(transaction)
        connection.close()
        timers.stopRequestDelay(old, core)
        // The only connection is the task's own one, whatever it was borrowed for.
        borrowed.giveBackAll()
        transaction.isQuiet = false
        if isJoining { file.join() }
    }

    // MARK: The end

    private func finish(_ number: Int) {
        // A slow disk may call back after the connection was closed.
        guard let connection = connection(number) ?? connections.first else { return }
        do throws(TransferError) {
            if destination == nil {
                destination = try file.place(
                    connection.undecided ?? ResourceMetadata(nil, file.version), total: nil)
            }
            for other in connections where other !== connection { try other.writer.flush() }
            let size = file.version.total ?? max(connection.writer.position, file.front)
            let part = try file.complete(size: size, flushing: connection.writer, to: destination) { [unowned self] in
                perform(.finish(number))
            }
            guard let part else { return }
            // However the counts came about: a file with a gap gets no name.
            guard file.front >= size else {
                throw TransferError(.remoteChanged, "only the first \(file.front) of \(size) bytes are contiguous")
            }
            guard let destination else { throw TransferError(.internal, "a file without a destination") }
            if !task.mismatches.isEmpty, let source = machine[number]?.source {
                task.setSoleSource(machine.sources[source].request.url)
            }
            warn(of: destination.name, at: machine[number]?.source ?? 0)
            end()
            task.progress.setTotal(size)
            DownloadCompletion(task).publish(part, size: size, destination: destination, file.verification())
        } catch {
            perform(machine.diskFailed(number, error, facts()))
        }
    }

    /// Warns of a file that the server called a web page, where its name or the request's `Accept` says otherwise, and
    /// of a coding that cannot be undone.
    private func warn(of name: String, at source: Int) {
        let request = machine.sources[source].request
        let names = [name, SafeFileName.make(fromURL: request.url)]
        let warning = MediaTypeDoubt.warning(
            file.version.mediaType, names: names, accept: request.headerFields[.accept])
        if let warning { session.delegate.downloadTask(task, didDoubt: warning) }
        if let coding = task.response.flatMap({ BodyDecoder.kept($0.contentCodings, ofFile: names) }) {
            session.delegate.downloadTask(
                task, didDoubt: "the file is stored as the server sent it, with the content coding \(coding)")
        }
    }

    private func fail(_ error: TransferError) {
        // Bytes in memory may spare fetching them again; whether the disk takes them does not matter any more.
        for connection in connections { try? connection.writer.flush() }
        let (part, version, writer) = (file.part, file.version, file.busyWriter)
        end()
        DownloadCompletion(task).fail(error, part: part, version: version, after: writer)
    }

    private func end() {
        machine.end()
        outgoing?.stop()
        leaveLine()
        timers.stopAll(core)
        // What a caller still holds of the connections outlives their place on the loop.
        withExtendedLifetime(connections) {
            closeAll(but: nil)
            task.endRun(on: core)
        }
    }
}
