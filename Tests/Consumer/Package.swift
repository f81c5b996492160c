// swift-tools-version: 6.2

import PackageDescription

/// A client of the library that depends only on the product `Transfer` of this repository.
let package = Package(
    name: "Consumer",
    dependencies: [
        // By default a path dependency is named after its directory, and a checkout may have any directory name.
        .package(name: "dld", path: "../..")
    ],
    targets: [
        .executableTarget(name: "Fetch", dependencies: [.product(name: "Transfer", package: "dld")])
    ]
)
