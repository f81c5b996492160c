// swift-tools-version: 6.2

import PackageDescription

/// A user of the library: it knows the product `Transfer` and nothing else of this repository.
let package = Package(
    name: "Consumer",
    dependencies: [
        // A package by its path is otherwise known by the name of its directory, which a checkout may call anything.
        .package(name: "dld", path: "../..")
    ],
    targets: [
        .executableTarget(name: "Fetch", dependencies: [.product(name: "Transfer", package: "dld")])
    ]
)
