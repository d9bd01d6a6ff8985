// swift-tools-version: 6.2
import PackageDescription

// A package of its own: its messages are Google's, which Scripts/conformance fetches and
// generates code for. It uses what every package may use of ours.
let package = Package(
  name: "vencejo-conformance",
  dependencies: [.package(name: "vencejo", path: "../..")],
  targets: [
    .executableTarget(
      name: "vencejo-conformance",
      dependencies: [
        .product(name: "VencejoProtobuf", package: "vencejo"),
        .product(name: "VencejoDescriptors", package: "vencejo"),
        .product(name: "VencejoJSON", package: "vencejo"),
        .product(name: "VencejoText", package: "vencejo"),
      ],
      swiftSettings: [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)])
  ]
)
