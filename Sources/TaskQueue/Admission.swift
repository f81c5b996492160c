import TaskModel
import TaskStore
import Transfer

/// Whoever asks for something.
package struct Caller: Sendable, Equatable {
    package var uid: UInt32
    /// Sees and changes everyone's tasks.
    package var isAdministrator: Bool

    package init(uid: UInt32, isAdministrator: Bool) {
        self.uid = uid
        self.isAdministrator = isAdministrator
    }

    /// Whose tasks the caller may see; `nil`: everyone's.
    var scope: UInt32? { isAdministrator ? nil : uid }
}

/// Judges what was asked for against the daemon's settings, and turns it into what the store takes.
struct Admission {
    let settings: QueueSettings
    let caller: Caller
    let now: Milliseconds
    /// The place that the task before this one goes to: mostly they go to the same.
    private var last: (directory: String?, place: DownloadPlace)?
    /// Where the downloads admitted so far go, each place once, with the position of its first task.
    private(set) var places: [PlacedTask] = []
    private var known: Set<DownloadPlace> = []
    private var admitted = 0

    struct PlacedTask: Sendable {
        var place: DownloadPlace
        var index: Int
    }
    /// And the host that it comes from.
    private var lastHost: (scheme: String, host: String, port: Int, key: String)?

    /// Whether there is such a task that the caller may see.
    private let knows: (TaskID) -> Bool

    init(
        settings: QueueSettings, caller: Caller, now: Milliseconds, knows: @escaping (TaskID) -> Bool = { _ in true }
    ) {
        self.settings = settings
        self.knows = knows
        self.caller = caller
        self.now = now
    }

    /// - Throws: ``FieldError`` under the JSON name of the field at fault.
    mutating func admit(_ asked: consuming TaskSpecification) throws(FieldError) -> NewTask {
        defer { admitted += 1 }
        var specification = asked
        let address = try Self.judge(specification)
        let path: String
        switch specification.kind {
        case .download: path = try destination(specification)
        case .upload:
            path = specification.file ?? ""
            try checkSource(path)
        }
        if let id = specification.afterTask, !knows(id) {
            throw FieldError(field: "afterTask", code: .unknownTask, message: "there is no task \(id)")
        }
        let standing = TaskStanding(
            paused: specification.paused, follows: specification.afterTask != nil, startAt: specification.startAt,
            now: now)
        let secrets = specification.takeSecrets(redactedURL: address.redacted)
        return NewTask(
            specification: specification, secrets: secrets, owner: caller.uid, host: hostKey(of: address),
            standing: standing, path: path)
    }

    private mutating func hostKey(of address: TaskAddress) -> String {
        if let last = lastHost, last.host == address.host, last.port == address.port, last.scheme == address.scheme {
            return last.key
        }
        let key = address.hostKey
        lastHost = (address.scheme, address.host, address.port, key)
        return key
    }

    /// Judges what a task that is there asks for from now on.
    ///
    /// - Parameters:
    ///   - asked: with its secrets.
    ///   - before: what it asked for until now, with its secrets.
    ///   - names: the file may come to lie elsewhere than before, or under another name.
    ///   - owner: the task's.
    mutating func readmit(
        _ asked: TaskSpecification, after before: TaskSpecification, names: Bool, owner: UInt32
    ) throws(FieldError) -> NewTask {
        var specification = asked
        let address = try Self.judge(specification)
        try checkSecrets(asked, before, address, owner: owner)
        let path = names && asked.kind == .download ? try destination(asked) : nil
        let secrets = specification.takeSecrets(redactedURL: address.redacted)
        return NewTask(
            specification: specification, secrets: secrets, owner: owner, host: address.hostKey,
            standing: TaskStanding(), path: path)
    }

    /// What the owner gave for one host does not go to another on the word of someone who could not read it. (Root and
    /// the daemon's own user can.)
    private func checkSecrets(
        _ asked: TaskSpecification, _ before: TaskSpecification, _ address: TaskAddress, owner: UInt32
    ) throws(FieldError) {
        guard ![owner, 0, settings.daemonUser].contains(caller.uid) else { return }
        let keepsSecrets = Self.keepsSecrets(asked, before)
        let hasKey = [0, settings.daemonUser].contains(owner)
        func check(_ address: TaskAddress, field: String, goesTo known: Set<String>) throws(FieldError) {
            let carries = keepsSecrets || (hasKey && address.scheme == "sftp")
            guard carries, !known.contains(address.hostKey) else { return }
            throw FieldError(
                field: field, code: .permissionDenied,
                message: "is of another host, and the task has what its owner gave for this one: header fields, a "
                    + "form, a password or a key"
            )
        }
        let own = try TaskAddress(parsing: before.url).hostKey
        try check(address, field: "url", goesTo: [own])
        guard asked.mirrors != before.mirrors else { return }
        var known: Set<String> = [own, address.hostKey]
        for mirror in before.mirrors { known.insert(try TaskAddress(parsing: mirror).hostKey) }
        for (index, mirror) in asked.mirrors.enumerated() {
            let field = "mirrors[\(index)]"
            try check(try TaskAddress(parsing: mirror, field: field), field: field, goesTo: known)
        }
    }

    /// Whether a changed task still has something by which its owner is known to a server.
    private static func keepsSecrets(_ asked: TaskSpecification, _ before: TaskSpecification) -> Bool {
        let keepsUser = before.user != nil && asked.user == before.user
        let keepsPassword = before.password != nil && asked.password == before.password
        let keepsHeaders = !before.headers.isEmpty && asked.headers == before.headers
        return keepsUser || keepsPassword || keepsHeaders || !before.form.isEmpty
    }

    /// - Returns: the URL, taken apart.
    private static func judge(_ specification: TaskSpecification) throws(FieldError) -> TaskAddress {
        let address = try specification.check()
        if let cookies = specification.cookies { try TaskCookies.check(cookies) }
        // A file server's directory is a list of names, and not a file.
        if address.namesDirectory {
            let deed = specification.kind == .download ? "fetches" : "stores"
            throw FieldError(
                field: "url", message: "names a directory; \(address.scheme) \(deed) files alone: name a file in it")
        }
        return address
    }

    /// Where a download's file will be, as far as that can be said before the server is asked.
    private mutating func destination(_ specification: TaskSpecification) throws(FieldError) -> String {
        try place(specification.directory).path(of: specification.expectedName)
    }

    private mutating func place(_ directory: String?) throws(FieldError) -> DownloadPlace {
        if let last, last.directory == directory { return last.place }
        let place = try DownloadPlace(directory: directory, settings: settings)
        last = (directory, place)
        if known.insert(place).inserted { places.append(PlacedTask(place: place, index: admitted)) }
        return place
    }

    private func checkSource(_ path: String) throws(FieldError) {
        do throws(TransferError) {
            _ = try UploadPermission(settings: settings, owner: caller.uid).open(path)
        } catch {
            throw FieldError(
                field: "file", code: error.code == .permissionDenied ? .permissionDenied : .invalid,
                message: error.message)
        }
    }
}
