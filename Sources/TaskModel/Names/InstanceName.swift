/// The name of a daemon beside the only one: one of several queues of a machine or a user, each with a configuration, a
/// state and a socket of its own.
///
/// The name is part of paths and of the names of systemd's units (`dld@NAME.service`). It consists of 1 to 64 ASCII
/// letters, digits, `_`, `-` and `.`, and begins with a letter or a digit. `dld` is the only daemon's configuration
/// file, so it is no name.
public struct InstanceName: Hashable, Sendable, CustomStringConvertible {
    public static let maximumLength = 64

    public let description: String

    /// - Throws: ``FieldError`` for the field `instance`.
    public init(_ name: String) throws(FieldError) {
        func refuse(_ message: String) -> FieldError { FieldError(field: "instance", message: message) }
        guard !name.isEmpty else { throw refuse("is empty; give the name of an instance or omit the option") }
        guard name.utf8.count <= Self.maximumLength else { throw refuse("is longer than \(Self.maximumLength) bytes") }
        guard name.utf8.allSatisfy({ Self.isAlphanumeric($0) || "_-.".utf8.contains($0) }) else {
            throw refuse("may contain the letters A to Z and a to z, digits, \"_\", \"-\" and \".\"")
        }
        guard let first = name.utf8.first, Self.isAlphanumeric(first) else {
            throw refuse("must begin with a letter or a digit")
        }
        guard name != "dld" else {
            throw refuse("dld is no instance: its configuration file is that of the daemon without a name")
        }
        description = name
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
    }

    /// The name of the directories for the socket and the state: `dld-NAME`.
    public var directory: String { "dld-\(description)" }
    /// The name of the configuration file: `NAME.yaml`.
    public var configurationFile: String { "\(description).yaml" }
}
