import ArgumentParser
import TaskModel

/// The daemon that was chosen on the command line.
struct DaemonChoice {
    /// The path that was given with `--socket`.
    var socket: String?
    /// The instance that was given with `--instance`.
    var instance: InstanceName?

    init(socket: String? = nil, instance: InstanceName? = nil) {
        self.socket = socket
        self.instance = instance
    }

    /// Reads the options before and after a command's name; of several values, the last one counts.
    ///
    /// - Throws: ``Failure`` with the exit status for wrong usage.
    init(_ options: [GlobalOptions]) throws {
        socket = options.compactMap(\.socket).last
        guard let name = options.compactMap(\.instance).last else { return }
        guard socket == nil else {
            throw Failure.usage("--instance and --socket both choose a daemon: give one of them", field: "--instance")
        }
        do throws(FieldError) {
            instance = try InstanceName(name)
        } catch {
            throw Failure.usage("--instance: \(error.message)", field: "--instance")
        }
    }

    /// The words that choose the same daemon in another command.
    var words: [String] {
        if let socket { return ["--socket", Shell.quoted(socket)] }
        return instance.map { ["--instance", $0.description] } ?? []
    }
}
