// swift-tools-version: 6.2

import PackageDescription

/// Clients of the libraries that depend only on the products of this repository.
let package = Package(
    name: "Consumer",
    dependencies: [
        // By default a path dependency is named after its directory, and a checkout may have any directory name.
        .package(name: "dld", path: "../..")
    ],
    targets: [
        .executableTarget(name: "Fetch", dependencies: [.product(name: "Transfer", package: "dld")]),
        .executableTarget(name: "Episodes", dependencies: [.product(name: "ControlClient", package: "dld")]),
        .executableTarget(name: "Mirror", dependencies: [.product(name: "Transfer", package: "dld")]),
    ]
)
