// swift-tools-version: 6.2
import PackageDescription

// One entry per room of the house; an import goes to a lower floor only
// (`Scripts/check-house` holds us to it).

let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .treatAllWarnings(as: .error),
]

func room(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .target(name: name, dependencies: dependencies, swiftSettings: settings)
}

func tests(_ name: String, _ dependencies: [Target.Dependency], resources: [Resource] = [])
  -> Target
{
  .testTarget(
    name: name, dependencies: dependencies, resources: resources, swiftSettings: settings)
}

let package = Package(
  name: "vencejo",
  products: [
    .library(name: "VencejoProtobuf", targets: ["VencejoProtobuf"]),
    .library(name: "VencejoDescriptors", targets: ["VencejoDescriptors"]),
    .library(name: "VencejoJSON", targets: ["VencejoJSON"]),
    .library(name: "VencejoText", targets: ["VencejoText"]),
    .library(name: "VencejoGenerator", targets: ["VencejoGenerator"]),
    // Addresses, TLS and compression are of lower rooms, and part of its signatures.
    .library(name: "VencejoRPC", targets: ["VencejoRPC", "VencejoHTTP2", "VencejoCompression"]),
    .library(name: "VencejoInterceptors", targets: ["VencejoInterceptors"]),
    .library(name: "VencejoObservability", targets: ["VencejoObservability"]),
    .library(name: "VencejoClient", targets: ["VencejoClient"]),
    .executable(name: "vencejo", targets: ["vencejo"]),
    .executable(name: "protoc-gen-vencejo", targets: ["protoc-gen-vencejo"]),
    .plugin(name: "VencejoBuildPlugin", targets: ["VencejoBuildPlugin"]),
    .plugin(name: "VencejoCommandPlugin", targets: ["VencejoCommandPlugin"]),
  ],
  targets: [
    // Floor 0: Debian's C libraries.
    .systemLibrary(
      name: "CNGHTTP2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
    .systemLibrary(name: "CLinux"),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .systemLibrary(
      name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    .systemLibrary(name: "CTerminal"),

    // Floor 1.
    room("VencejoProtobuf"),
    room("VencejoHTTP2", ["CLinux", "CNGHTTP2", "COpenSSL"]),
    room("VencejoSQLite", ["CSQLite"]),
    room("VencejoCrypto", ["COpenSSL"]),
    room("VencejoCompression", ["CZlib"]),
    room("VencejoHTTPClient", ["CCurl"]),
    room("VencejoDescriptors", ["VencejoProtobuf"]),
    room("VencejoJSON", ["VencejoDescriptors", "VencejoProtobuf"]),
    room("VencejoText", ["VencejoDescriptors", "VencejoProtobuf"]),
    room("VencejoStore", ["VencejoSQLite", "VencejoCrypto"]),

    // Floor 2.
    room("VencejoGenerator", ["VencejoDescriptors", "VencejoProtobuf"]),
    room("VencejoRPC", ["VencejoHTTP2", "VencejoProtobuf", "VencejoCompression"]),
    // Apart from the stubs, so that they compile beside VencejoRPC.
    room("VencejoMessages", ["VencejoProtobuf"]),
    room("VencejoAPI", ["VencejoMessages", "VencejoRPC", "VencejoProtobuf"]),

    room("VencejoInterceptors", ["VencejoRPC", "VencejoProtobuf"]),
    room("VencejoObservability", ["VencejoRPC", "VencejoHTTP2", "VencejoProtobuf"]),

    // Floor 3.
    room(
      "VencejoClient",
      ["VencejoAPI", "VencejoRPC", "VencejoHTTP2", "VencejoProtobuf", "VencejoSQLite"]),
    room(
      "VencejoServer",
      [
        "VencejoAPI", "VencejoRPC", "VencejoHTTP2", "VencejoProtobuf", "VencejoJSON",
        "VencejoStore", "VencejoCrypto", "VencejoCompression", "VencejoHTTPClient",
      ]),
    room(
      "VencejoTools",
      [
        "VencejoRPC", "VencejoHTTP2", "VencejoProtobuf", "VencejoDescriptors", "VencejoJSON",
        "VencejoText",
      ]),
    room(
      "VencejoConsole",
      [
        "VencejoClient", "VencejoAPI", "VencejoRPC", "VencejoHTTP2", "VencejoProtobuf",
        "VencejoJSON", "VencejoTools", "CTerminal",
      ]),

    // Floor 4.
    .executableTarget(
      name: "vencejo",
      dependencies: [
        "VencejoServer", "VencejoStore", "VencejoCrypto", "VencejoConsole", "VencejoTools",
        "VencejoRPC", "VencejoHTTP2", "VencejoObservability", "VencejoHTTPClient",
      ],
      swiftSettings: settings),
    .executableTarget(
      name: "protoc-gen-vencejo", dependencies: ["VencejoGenerator", "VencejoProtobuf"],
      swiftSettings: settings),

    // For packages that use ours: the generator in `swift build` and `swift package`.
    .plugin(
      name: "VencejoBuildPlugin", capability: .buildTool(), dependencies: ["protoc-gen-vencejo"],
      path: "Sources/VencejoBuildPlugin"),
    .plugin(
      name: "VencejoCommandPlugin",
      capability: .command(
        intent: .custom(
          verb: "generate-protobuf",
          description: "Writes the Swift code of .proto files beside them"),
        permissions: [
          .writeToPackageDirectory(reason: "The generated code goes to each target's Generated")
        ]),
      dependencies: ["protoc-gen-vencejo"], path: "Sources/VencejoCommandPlugin"),

    // The notes app of Tests/Examples.
    .executableTarget(
      name: "notes", dependencies: ["VencejoAPI", "VencejoRPC", "VencejoProtobuf"],
      path: "Tests/Examples/Notes/swift", swiftSettings: settings),
    // The Swift side of Tests/Interop.
    .target(
      name: "InteropEcho", dependencies: ["VencejoRPC", "VencejoProtobuf"],
      path: "Tests/Interop/Swift/InteropEcho", swiftSettings: settings),
    .executableTarget(
      name: "vencejo-echo",
      dependencies: [
        "InteropEcho", "VencejoRPC", "VencejoHTTP2", "VencejoProtobuf", "VencejoCompression",
      ],
      path: "Tests/Interop/Swift/vencejo-echo", swiftSettings: settings),
    .executableTarget(
      name: "readme-example",
      dependencies: [
        "InteropEcho", "VencejoRPC", "VencejoHTTP2", "VencejoProtobuf", "VencejoCompression",
      ],
      path: "Tests/Interop/Swift/readme-example", swiftSettings: settings),

    // gRPC's interoperability tests.
    .target(
      name: "InteropTesting",
      dependencies: ["VencejoRPC", "VencejoHTTP2", "VencejoProtobuf", "VencejoCompression"],
      path: "Tests/Interop/Swift/InteropTesting", swiftSettings: settings),
    .executableTarget(
      name: "vencejo-interop-server",
      dependencies: ["InteropTesting", "VencejoRPC", "VencejoHTTP2"],
      path: "Tests/Interop/Swift/vencejo-interop-server", swiftSettings: settings),
    .executableTarget(
      name: "vencejo-interop-client",
      dependencies: [
        "InteropTesting", "VencejoRPC", "VencejoHTTP2", "VencejoProtobuf", "VencejoCompression",
      ],
      path: "Tests/Interop/Swift/vencejo-interop-client", swiftSettings: settings),

    // Tests mirror the rooms.
    .target(
      name: "ProtobufOracle", dependencies: ["VencejoProtobuf", "TestSupport"],
      path: "Tests/Oracle",
      exclude: ["oracle.py", "oracle.cc", "oracle.c", "Makefile"], swiftSettings: settings),
    .target(
      name: "TestMessages", dependencies: ["VencejoProtobuf"], path: "Tests/Messages",
      swiftSettings: settings),
    .target(name: "TestSupport", path: "Tests/Support", swiftSettings: settings),
    .target(
      name: "TestCertificates", dependencies: ["VencejoHTTP2"], path: "Tests/Certificates",
      swiftSettings: settings),
    tests(
      "VencejoProtobufTests",
      ["VencejoProtobuf", "ProtobufOracle", "TestMessages", "TestSupport"]),
    tests(
      "VencejoDescriptorsTests",
      ["VencejoDescriptors", "VencejoProtobuf", "ProtobufOracle", "TestMessages"]),
    tests(
      "VencejoJSONTests",
      [
        "VencejoJSON", "VencejoText", "VencejoDescriptors", "VencejoProtobuf", "ProtobufOracle",
        "TestMessages",
      ]),
    tests(
      "VencejoTextTests",
      ["VencejoText", "VencejoDescriptors", "VencejoProtobuf", "ProtobufOracle", "TestMessages"]),
    tests(
      "DifferentialTests",
      [
        "VencejoAPI", "VencejoRPC", "VencejoProtobuf", "VencejoDescriptors", "ProtobufOracle",
        "TestMessages",
      ]),
    tests("VencejoGeneratorTests", ["VencejoGenerator", "VencejoProtobuf"]),
    tests("VencejoHTTP2Tests", ["VencejoHTTP2", "CLinux", "CNGHTTP2", "TestCertificates"]),
    tests(
      "VencejoRPCTests",
      [
        "VencejoRPC", "VencejoHTTP2", "VencejoProtobuf", "VencejoCompression", "InteropEcho",
        "TestCertificates",
      ]),
    tests(
      "VencejoInterceptorsTests",
      ["VencejoInterceptors", "VencejoRPC", "VencejoHTTP2", "VencejoProtobuf", "InteropEcho"]),
    tests(
      "VencejoObservabilityTests",
      [
        "VencejoObservability", "VencejoInterceptors", "VencejoRPC", "VencejoHTTP2",
        "VencejoProtobuf", "InteropEcho",
      ]),
    tests("VencejoSQLiteTests", ["VencejoSQLite", "TestSupport"]),
    tests("VencejoCryptoTests", ["VencejoCrypto"]),
    tests("VencejoCompressionTests", ["VencejoCompression"]),
    tests("VencejoHTTPClientTests", ["VencejoHTTPClient"]),
    tests("VencejoStoreTests", ["VencejoStore", "VencejoSQLite", "VencejoCrypto", "TestSupport"]),
    tests(
      "VencejoServerTests",
      [
        "VencejoServer", "VencejoAPI", "VencejoRPC", "VencejoHTTP2", "VencejoProtobuf",
        "VencejoJSON", "VencejoStore", "VencejoCrypto", "VencejoHTTPClient", "TestSupport",
      ]),
    .testTarget(
      name: "ModelTests",
      dependencies: [
        "vencejo", "VencejoServer", "VencejoAPI", "VencejoRPC", "VencejoHTTP2", "VencejoProtobuf",
        "VencejoCrypto", "VencejoStore", "VencejoJSON", "TestSupport",
      ],
      path: "Tests/Model", swiftSettings: settings),
    tests(
      "VencejoClientTests",
      [
        "VencejoClient", "VencejoServer", "VencejoAPI", "VencejoRPC", "VencejoHTTP2",
        "VencejoProtobuf", "VencejoSQLite", "TestSupport",
      ]),
    tests(
      "VencejoToolsTests",
      [
        "VencejoTools", "VencejoRPC", "VencejoHTTP2", "VencejoJSON", "VencejoProtobuf",
        "VencejoDescriptors", "InteropEcho",
      ]),
    tests(
      "VencejoConsoleTests",
      [
        "VencejoConsole", "VencejoClient", "VencejoServer", "VencejoAPI", "VencejoRPC",
        "VencejoHTTP2", "VencejoTools", "CTerminal", "TestSupport",
      ]),
  ]
)
