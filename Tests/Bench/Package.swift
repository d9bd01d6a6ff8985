// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that nothing but Scripts/bench builds it. It sees the library
// as any other package does.
let package = Package(
  name: "vencejo-bench",
  dependencies: [.package(name: "vencejo", path: "../..")],
  targets: [
    .executableTarget(
      name: "codec-bench",
      dependencies: [
        .product(name: "VencejoProtobuf", package: "vencejo"),
        .product(name: "VencejoJSON", package: "vencejo"),
      ],
      swiftSettings: [.swiftLanguageMode(.v6)]),
    .executableTarget(
      name: "call-bench",
      dependencies: [
        .product(name: "VencejoRPC", package: "vencejo"),
        .product(name: "VencejoObservability", package: "vencejo"),
      ],
      swiftSettings: [.swiftLanguageMode(.v6)]),
    .executableTarget(
      name: "binary-only",
      dependencies: [.product(name: "VencejoProtobuf", package: "vencejo")],
      swiftSettings: [.swiftLanguageMode(.v6)]),
  ]
)
