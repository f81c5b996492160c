import CSystemd

/// A client for properties of units, read from the system's systemd manager over D-Bus (org.freedesktop.systemd1(5)).
final class SystemdManager {
    private let bus: OpaquePointer

    /// - Returns: `nil` if the bus is unavailable.
    init?() {
        var bus: OpaquePointer?
        guard sd_bus_open_system(&bus) >= 0, let bus else { return nil }
        self.bus = bus
    }

    deinit { _ = sd_bus_flush_close_unref(bus) }  // returns no result

    private static let service = "org.freedesktop.systemd1"

    /// - Parameter interface: `Unit` or `Service`.
    func text(_ property: String, of unit: String, in interface: String) -> String? {
        read(property, of: unit, in: interface, "s") { message in
            var text: UnsafePointer<CChar>?
            guard sd_bus_message_read_basic(message, Self.type("s"), &text) > 0 else { return nil }
            return text.map { String(cString: $0) }
        }
    }

    func flag(_ property: String, of unit: String, in interface: String) -> Bool? {
        read(property, of: unit, in: interface, "b") { message in
            var flag: CInt = 0
            return sd_bus_message_read_basic(message, Self.type("b"), &flag) > 0 ? flag != 0 : nil
        }
    }

    func list(_ property: String, of unit: String, in interface: String) -> [String] {
        read(property, of: unit, in: interface, "as") { message in
            guard sd_bus_message_enter_container(message, Self.type("a"), "s") > 0 else { return nil }
            var texts: [String] = []
            var text: UnsafePointer<CChar>?
            while sd_bus_message_read_basic(message, Self.type("s"), &text) > 0, let found = text {
                texts.append(String(cString: found))
            }
            return texts
        } ?? []
    }

    /// Returns the destination of each entry of `BindPaths=` and similar properties. An entry consists of source,
    /// destination, a flag and a number.
    func destinations(_ property: String, of unit: String, in interface: String) -> [String] {
        read(property, of: unit, in: interface, "a(ssbt)") { message in
            guard sd_bus_message_enter_container(message, Self.type("a"), "(ssbt)") > 0 else { return nil }
            var found: [String] = []
            while sd_bus_message_enter_container(message, Self.type("r"), "ssbt") > 0 {
                var text: UnsafePointer<CChar>?
                guard sd_bus_message_skip(message, "s") >= 0,
                    sd_bus_message_read_basic(message, Self.type("s"), &text) > 0,
                    sd_bus_message_skip(message, "bt") >= 0, sd_bus_message_exit_container(message) >= 0
                else { break }
                if let text { found.append(String(cString: text)) }
            }
            return found
        } ?? []
    }

    private static func type(_ letter: Unicode.Scalar) -> CChar { CChar(truncatingIfNeeded: letter.value) }

    private func read<Value>(
        _ property: String, of unit: String, in interface: String, _ type: String,
        _ body: (OpaquePointer) -> Value?
    ) -> Value? {
        var message: OpaquePointer?
        let path = "/org/freedesktop/systemd1/unit/" + Self.escaped(unit)
        let result = sd_bus_get_property(
            bus, Self.service, path, "\(Self.service).\(interface)", property, nil, &message, type)
        guard result >= 0, let message else { return nil }
        defer { _ = sd_bus_message_unref(message) }  // returns no result
        return body(message)
    }

    /// Returns a unit's name as a component of a D-Bus object path. Bytes other than letters and digits become `_` and
    /// two hexadecimal digits.
    static func escaped(_ unit: String) -> String {
        unit.utf8.map { byte in
            let isPlain = (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
            let hex = String(byte, radix: 16)
            return isPlain ? String(UnicodeScalar(byte)) : "_" + (hex.count < 2 ? "0" : "") + hex
        }.joined()
    }
}
