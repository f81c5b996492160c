// swift-tools-version: 6.2

import PackageDescription

/// The same work by `Transfer`, by Foundation's `URLSession` and by async-http-client: a program each.
let package = Package(
    name: "Libraries",
    dependencies: [
        // By default a path dependency is named after its directory, and a checkout may have any directory name.
        .package(name: "dld", path: "../../.."),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.30.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.80.0"),
    ],
    targets: [
        .target(name: "Workload"),
        .executableTarget(
            name: "WithTransfer", dependencies: ["Workload", .product(name: "Transfer", package: "dld")]),
        .executableTarget(name: "WithFoundation", dependencies: ["Workload"]),
        .executableTarget(
            name: "WithAsyncHTTPClient",
            dependencies: [
                "Workload", .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "_NIOFileSystem", package: "swift-nio"),
            ]),
    ]
)
