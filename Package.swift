// swift-tools-version: 6.2

import PackageDescription

/// What every target of ours is compiled with: Swift 6, and no warning left standing.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

extension Target.Dependency {
    static let argumentParser = product(name: "ArgumentParser", package: "swift-argument-parser")
    static let coreMetrics = product(name: "CoreMetrics", package: "swift-metrics")
    static let crypto = product(name: "Crypto", package: "swift-crypto")
    static let deque = product(name: "DequeModule", package: "swift-collections")
    static let grdb = product(name: "GRDB", package: "GRDB.swift")
    static let grdbSQLite = product(name: "GRDBSQLite", package: "GRDB.swift")
    static let heap = product(name: "HeapModule", package: "swift-collections")
    static let httpTypes = product(name: "HTTPTypes", package: "swift-http-types")
    static let logging = product(name: "Logging", package: "swift-log")
    static let metricsTestKit = product(name: "MetricsTestKit", package: "swift-metrics")
    static let nioCore = product(name: "NIOCore", package: "swift-nio")
    static let nioPosix = product(name: "NIOPosix", package: "swift-nio")
    static let serviceLifecycle = product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
    static let systemPackage = product(name: "SystemPackage", package: "swift-system")
    static let unixSignals = product(name: "UnixSignals", package: "swift-service-lifecycle")
    static let yams = product(name: "Yams", package: "Yams")
}

let package = Package(
    name: "dld",
    products: [
        .library(name: "Transfer", targets: ["Transfer"]),
        .library(name: "StubTransport", targets: ["StubTransport"]),
        .library(name: "ControlClient", targets: ["ControlClient"]),
        .executable(name: "dld", targets: ["dld"]),
        .executable(name: "dlctl", targets: ["dlctl"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.1.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.0.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.0.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.3.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.80.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.6.0"),
        .package(url: "https://github.com/apple/swift-system", from: "1.4.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.0.0"),
    ],
    targets: [
        // The ground floor: C libraries and system calls as typed functions.
        .target(name: "CCurl", linkerSettings: [.linkedLibrary("curl")]),
        .target(name: "CLinux"),
        .target(name: "CDescriptors"),
        .target(name: "CReceiver", dependencies: ["CLinux"]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(
            name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),

        // The engine.
        .target(name: "HTTPMessages", dependencies: [.httpTypes], swiftSettings: strict),
        .target(name: "HTTPCaching", dependencies: ["HTTPMessages", .httpTypes], swiftSettings: strict),
        .target(name: "Curl", dependencies: ["CCurl", "CLinux", .heap, .systemPackage], swiftSettings: strict),
        .target(
            name: "Transfer",
            dependencies: [
                "Curl", "HTTPCaching", "HTTPMessages", "CLinux", "CZlib", .deque, .httpTypes, .crypto,
            ],
            swiftSettings: strict),
        .target(name: "StubTransport", dependencies: ["Transfer", "Curl", .httpTypes], swiftSettings: strict),

        // The queue.
        .target(name: "TaskModel", swiftSettings: strict),
        .target(name: "TaskFiles", dependencies: ["TaskModel", .yams], swiftSettings: strict),
        .target(
            name: "TaskStore", dependencies: ["TaskModel", "CSQLite", .coreMetrics, .grdb, .grdbSQLite],
            swiftSettings: strict),
        .target(
            name: "TaskQueue",
            dependencies: [
                "CLinux", "TaskModel", "TaskFiles", "TaskStore", "Transfer", .coreMetrics, .crypto, .httpTypes,
                .logging,
            ],
            swiftSettings: strict),

        // The control socket.
        .target(name: "ControlProtocol", dependencies: ["TaskModel"], swiftSettings: strict),
        .target(
            name: "ControlServer",
            dependencies: [
                "CLinux", "CReceiver", "ControlProtocol", "Curl", "TaskModel", "TaskQueue", .coreMetrics, .nioCore,
                .nioPosix, .logging,
            ],
            swiftSettings: strict),
        .target(name: "ControlClient", dependencies: ["ControlProtocol", "CLinux"], swiftSettings: strict),

        // The terminal.
        .target(name: "TerminalScreen", swiftSettings: strict),

        // The programs.
        .executableTarget(
            name: "dld",
            dependencies: [
                "CDescriptors", "CLinux", "CSystemd", "TaskQueue", "TaskStore", "TaskFiles", "TaskModel",
                "Transfer", "ControlServer", "ControlProtocol", .argumentParser, .coreMetrics, .logging,
                .serviceLifecycle, .unixSignals,
            ],
            swiftSettings: strict),
        .executableTarget(
            name: "dlctl",
            dependencies: [
                "CLinux", "ControlClient", "ControlProtocol", "TaskFiles", "TaskModel", "TerminalScreen",
                .argumentParser,
            ],
            swiftSettings: strict),

        // Tests mirror the sources.
        .target(name: "MutexOrder", path: "Tests/MutexOrder"),
        .target(
            name: "TestSupport", dependencies: ["CLinux", "HTTPMessages", "MutexOrder", .crypto],
            path: "Tests/TestSupport", swiftSettings: strict),
        .target(name: "CallCount", path: "Tests/CallCount"),
        .executableTarget(
            name: "TransferLoad", dependencies: ["Transfer", "CallCount", .httpTypes], path: "Tests/TransferLoad",
            swiftSettings: strict),
        .executableTarget(
            name: "BackgroundApp", dependencies: ["ControlClient"], path: "Tests/BackgroundApp", swiftSettings: strict),
        .testTarget(
            name: "CurlTests", dependencies: ["Curl", "CCurl", "CLinux", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "HTTPMessagesTests", dependencies: ["HTTPMessages", "TestSupport", .httpTypes],
            swiftSettings: strict),
        .testTarget(
            name: "HTTPCachingTests", dependencies: ["HTTPCaching", "HTTPMessages", "TestSupport", .httpTypes],
            swiftSettings: strict),
        .testTarget(
            name: "TransferTests", dependencies: ["Transfer", "Curl", "CLinux", "TestSupport", .httpTypes],
            swiftSettings: strict),
        .testTarget(
            name: "StubTransportTests", dependencies: ["StubTransport", "Transfer", "Curl", "TestSupport", .httpTypes],
            swiftSettings: strict),
        .testTarget(
            name: "HTTPBinTests", dependencies: ["Transfer", "TestSupport", .httpTypes], exclude: ["requirements.txt"],
            swiftSettings: strict),
        .testTarget(name: "TaskModelTests", dependencies: ["TaskModel", "TestSupport"], swiftSettings: strict),
        .testTarget(name: "TaskFilesTests", dependencies: ["TaskFiles", "TaskModel"], swiftSettings: strict),
        .testTarget(
            name: "TaskStoreTests", dependencies: ["TaskStore", "TaskModel", "TestSupport", .grdb, .grdbSQLite],
            swiftSettings: strict),
        .testTarget(
            name: "TaskQueueTests",
            dependencies: [
                "TaskQueue", "TaskStore", "TaskModel", "TaskFiles", "Transfer", "TestSupport", "dlctl", .argumentParser,
                .grdb, .logging, .metricsTestKit,
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ControlProtocolTests", dependencies: ["ControlProtocol", "TaskModel"], swiftSettings: strict),
        .testTarget(
            name: "ControlServerTests",
            dependencies: [
                "ControlServer", "ControlProtocol", "TaskModel", "TestSupport", .coreMetrics, .metricsTestKit, .nioCore,
                .nioPosix,
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ControlClientTests",
            dependencies: ["ControlClient", "ControlProtocol", "TaskModel", "TestSupport"], swiftSettings: strict),
        .testTarget(name: "TerminalScreenTests", dependencies: ["TerminalScreen"], swiftSettings: strict),
        .testTarget(
            name: "dldTests",
            dependencies: [
                "dld", "ControlProtocol", "TaskQueue", "TestSupport", .argumentParser, .coreMetrics, .logging,
            ],
            swiftSettings: strict),
        .testTarget(
            name: "dlctlTests",
            dependencies: [
                "dlctl", "ControlClient", "ControlProtocol", "TaskModel", "TerminalScreen", "TestSupport",
                .argumentParser,
            ],
            swiftSettings: strict),
        .testTarget(
            name: "Integration",
            dependencies: [
                "TestSupport", "ControlClient", "ControlProtocol", "TaskModel", "TaskStore", "TaskQueue", "CLinux",
                "TransferLoad",
                "BackgroundApp", "dld", "dlctl", .argumentParser, .grdb,
            ],
            swiftSettings: strict),
    ]
)
