// swift-tools-version: 6.2
import PackageDescription

// A package of somebody who uses this one, built by test_user.py once for each way to set the
// language: what users write must not depend on that.

let path = Context.environment["VENCEJO_PACKAGE"] ?? "../../.."

let settings: [SwiftSetting] =
  switch Context.environment["USER_SETTINGS"] {
  case "upcoming":
    [
      .swiftLanguageMode(.v6),
      .enableUpcomingFeature("ExistentialAny"),
      .enableUpcomingFeature("ImmutableWeakCaptures"),
      .enableUpcomingFeature("InferIsolatedConformances"),
      .enableUpcomingFeature("InternalImportsByDefault"),
      .enableUpcomingFeature("MemberImportVisibility"),
      .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ]
  case "swift-5": [.swiftLanguageMode(.v5)]
  default: [.swiftLanguageMode(.v6)]
  }

let package = Package(
  name: "user",
  dependencies: [.package(name: "vencejo", path: path)],
  targets: [
    .target(
      name: "UserAPI",
      dependencies: [
        .product(name: "VencejoRPC", package: "vencejo"),
        .product(name: "VencejoProtobuf", package: "vencejo"),
      ],
      swiftSettings: settings),
    .executableTarget(
      name: "user",
      dependencies: ["UserAPI", .product(name: "VencejoRPC", package: "vencejo")],
      swiftSettings: settings),
  ]
)
