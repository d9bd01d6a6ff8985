// swift-tools-version: 6.2
import PackageDescription

// A package of its own: libFuzzer brings its own main function, and sanitizers are for all
// targets or none. See Scripts/fuzz.
let package = Package(
  name: "vencejo-fuzz",
  dependencies: [.package(name: "vencejo", path: "../..")],
  targets: [
    // The messages of the tests; the folder is a link to theirs.
    .target(
      name: "TestMessages",
      dependencies: [.product(name: "VencejoProtobuf", package: "vencejo")],
      path: "Messages", swiftSettings: [.swiftLanguageMode(.v6)]),
    .executableTarget(
      name: "vencejo-fuzz",
      dependencies: [
        "TestMessages",
        .product(name: "VencejoProtobuf", package: "vencejo"),
        .product(name: "VencejoDescriptors", package: "vencejo"),
        .product(name: "VencejoJSON", package: "vencejo"),
        .product(name: "VencejoText", package: "vencejo"),
        .product(name: "VencejoGenerator", package: "vencejo"),
      ],
      swiftSettings: [
        .swiftLanguageMode(.v6), .unsafeFlags(["-parse-as-library"]),
      ]),
  ]
)
