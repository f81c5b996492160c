/// The result of `rpc.discover`: a description of the protocol for programs (OpenRPC, spec.open-rpc.org).
///
/// The methods and their parameters are those by which requests are checked, and the fields of tasks those of
/// `TaskField`.
public struct OpenRPCDocument: Encodable, Sendable {
    /// The version of the OpenRPC specification.
    static let version = "1.3.2"

    public init() {}

    public var value: RPCValue { Self.document }

    public func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }

    private static let document: RPCValue = [
        "openrpc": .string(version),
        "info": [
            "title": "dld",
            "version": .string(ProductVersion.version),
            "description": .string(about),
            "license": ["name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"],
        ],
        "methods": .array(MethodName.allCases.map(method)),
        "components": [
            "schemas": .object(table(SharedSchema.allCases.map { ($0.rawValue, $0.schema.value) })),
            "errors": .object(table(SharedError.allCases.map { ($0.rawValue, error($0)) })),
        ],
        // OpenRPC has no place for notifications that a server sends.
        "x-notifications": [
            [
                "name": .string(EventNotification.method),
                "summary": "Reports an event on a connection that has called events.subscribe",
                "paramStructure": "by-name",
                "params": .array(SharedSchema.eventFields.map(parameter)),
            ]
        ],
    ]

    private static let about = """
        The control protocol of the download daemon dld: JSON-RPC 2.0 on a Unix stream socket, one JSON text a line \
        of at most \(MessageLimits.lineLength) bytes. Later versions may add methods, optional parameters and fields \
        of results; ignore the fields that you do not know.
        """

    private static func table(_ entries: [(String, RPCValue)]) -> [String: RPCValue] {
        Dictionary(entries) { $1 }
    }

    private static func method(_ method: MethodName) -> RPCValue {
        let description = method.description
        return [
            "name": .string(method.rawValue),
            "summary": .string(description.summary),
            "paramStructure": "by-name",
            "params": .array(method.parameters.map(parameter)),
            "result": ["name": .string(description.result.name), "schema": description.result.schema.value],
            "errors": .array(
                description.errors.map { ["$ref": .string("#/components/errors/\($0.rawValue)")] }),
            "examples": [
                [
                    "name": .string(method.rawValue),
                    "params": .array(
                        description.example.parameters.sorted { $0.key < $1.key }
                            .map { ["name": .string($0.key), "value": $0.value] }),
                    "result": ["name": .string(description.result.name), "value": description.example.result],
                ]
            ],
        ]
    }

    private static func parameter(_ field: ParameterField) -> RPCValue {
        [
            "name": .string(field.name), "summary": .string(field.summary), "required": .bool(field.isRequired),
            "schema": field.schema.value,
        ]
    }

    private static func error(_ error: SharedError) -> RPCValue {
        ["code": .integer(Int64(error.number)), "message": .string(error.summary)]
    }
}
