import ControlProtocol
import TaskModel

/// Requests with an extreme, missing, doubled or mistyped value in one field, for every field of every method.
enum ExtremeRequests {
    /// A request as a line of text, without its LF.
    struct Request {
        var method: MethodName
        var text: String
    }

    /// JSON texts used as the value of a field.
    static let values =
        numbers + [
            "null", "true", "false", "\"\"", "\"\\u0000\"", "\"\\ud800\"", "\"9223372036854775807\"", "\"-1\"",
            "\"\(String(repeating: "a", count: 9000))\"",
            "\"http://127.0.0.1:9/\(String(repeating: "%00", count: 200))\"",
            "\"\u{202E}..\\/..\\/\"", "[]", "[null]", "[[]]", "{}", "{\"a\":{\"a\":[]}}", "[9223372036854775807]",
            "[-9223372036854775808,0,1,1]", "[\"\"]", "[\"a=b\",\"A: b\",\"http://127.0.0.1:9/b\"]", "[{}]",
        ]

    private static let numbers = [
        "0", "-0", "1", "-1", "2", "0.5", "1e3", "1e18", "1e19", "1e308", "1e999", "1e-999", "-1e999",
        "127", "256", "32768", "65536", "2147483647", "2147483648", "-2147483649", "4294967295", "4294967296",
        "9007199254740993", "253402300799999", "253402300800000", "9223372036854775806", "9223372036854775807",
        "-9223372036854775807", "-9223372036854775808", "9223372036854775808", "-9223372036854775809",
        "18446744073709551615", "18446744073709551616",
    ]

    /// Returns the other parameters of a request, as JSON texts, with which the method reaches the field under test.
    private static func base(of method: MethodName) -> [String: String] {
        switch method {
        case .taskAdd: ["tasks": "[\(task([:]))]"]
        case .taskGet: ["id": "1"]
        case .taskPause, .taskResume, .taskCancel, .taskRetry, .taskRemove: ["ids": "[1]"]
        case .taskUpdate: ["id": "1", "changes": "{}"]
        case .taskMove: ["id": "1", "first": "true"]
        case .queuePut: ["queue": "1", "entries": "[\(task([:]))]"]
        case .queueCommit, .queueAbort: ["queue": "1"]
        case .sourceReceive: ["count": "1"]
        case .sourceAttach: ["id": "1", "descriptor": "0"]
        case .backupRead: ["offset": "0"]
        case .taskList, .taskCount, .queueBegin, .queueList, .daemonStatus, .daemonLimits, .daemonReload, .daemonBackup,
            .daemonShutdown, .eventsList, .eventsSubscribe, .rpcDiscover:
            [:]
        }
    }

    /// Returns the fields of the objects in the named parameter.
    private static func fields(within parameter: String) -> [String] {
        switch parameter {
        case "filter": TaskFilter.CodingKeys.allCases.map(\.rawValue)
        case "changes": TaskField.changeable.map(\.name)
        case "tasks", "entries": TaskField.ofJSON.map(\.name)
        case "pieceHashes": PieceHashes.Field.allCases.map(\.rawValue)
        default: []
        }
    }

    private static func object(_ fields: [String: String]) -> String {
        "{" + fields.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",") + "}"
    }

    private static func task(_ fields: [String: String]) -> String {
        object(["url": "\"http://127.0.0.1:9/a\"", "paused": "true"].merging(fields) { $1 })
    }

    /// Returns a value of `parameter` with `value` in its field `field`.
    private static func nested(_ parameter: String, _ field: String, _ value: String) -> String {
        switch parameter {
        case "tasks", "entries": "[\(task([field: value]))]"
        case "pieceHashes":
            object(["algorithm": "\"sha-256\"", "length": "1", "hashes": "\"\""].merging([field: value]) { $1 })
        default: object([field: value])
        }
    }

    static func request(_ method: MethodName, _ parameters: String) -> Request {
        Request(
            method: method,
            text: #"{"jsonrpc":"2.0","id":1,"method":"\#(method.rawValue)","params":\#(parameters)}"#)
    }

    /// Returns all requests of one method. None of those for `daemon.shutdown` is valid.
    static func all(of method: MethodName) -> [Request] {
        let base = base(of: method)
        var requests = values.filter { method != .daemonShutdown || $0 != "{}" }.map { request(method, $0) }
        requests.append(request(method, object(base.merging(["unknown": "1"]) { $1 })))
        for parameter in method.parameters.map(\.name) {
            var rest = base
            rest[parameter] = nil
            requests.append(request(method, object(rest)))
            requests += values.map { request(method, object(base.merging([parameter: $0]) { $1 })) }
            let twice = "\"\(parameter)\":1"
            requests.append(request(method, "{\(twice),\(twice)}"))
            for field in fields(within: parameter) {
                requests += values.map {
                    request(method, object(base.merging([parameter: nested(parameter, field, $0)]) { $1 }))
                }
                for inner in fields(within: field) {
                    requests += values.map {
                        let value = nested(parameter, field, nested(field, inner, $0))
                        return request(method, object(base.merging([parameter: value]) { $1 }))
                    }
                }
            }
        }
        return requests
    }

    /// Returns a random request with unlisted values in one or several fields of a method.
    static func random(using generator: inout some RandomNumberGenerator) -> Request {
        func value() -> String {
            switch UInt8.random(in: 0..<8, using: &generator) {
            case 0...3: return values.randomElement(using: &generator) ?? "null"
            case 4:
                let edge = Int64.random(in: 0...62, using: &generator)
                let near = (Int64(1) << edge) &+ Int64.random(in: -2...2, using: &generator)
                return "\(Bool.random(using: &generator) ? near : 0 &- near)"
            case 5: return "\(UInt64.random(in: .min ... .max, using: &generator))"
            case 6:
                let other = Int64.random(in: -3...9, using: &generator)
                return "[\(values.randomElement(using: &generator) ?? ""),\(other)]"
            default: return "\(Double(bitPattern: UInt64.random(in: .min ... .max, using: &generator)))"
            }
        }
        let method = MethodName.allCases.randomElement(using: &generator) ?? .daemonStatus
        // No request may shut the daemon down.
        guard method != .daemonShutdown else { return request(method, object(["unknown": value()])) }
        var parameters = base(of: method)
        for parameter in method.parameters.map(\.name) where Bool.random(using: &generator) {
            let field = fields(within: parameter).randomElement(using: &generator)
            if let field, Bool.random(using: &generator) {
                parameters[parameter] = nested(parameter, field, value())
            } else {
                parameters[parameter] = value()
            }
        }
        return request(method, object(parameters))
    }
}
