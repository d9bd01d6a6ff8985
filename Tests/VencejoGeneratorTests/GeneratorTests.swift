import Testing
import VencejoProtobuf

@testable import VencejoGenerator

/// What the generated code contains; that it compiles and works, VencejoProtobufTests show.
struct GeneratorTests {
  private func respond(
    _ file: Google.FileDescriptorProto, _ parameter: String = ""
  ) -> Google.CodeGeneratorResponse {
    var request = Google.CodeGeneratorRequest()
    request.fileToGenerate = [file.name ?? ""]
    request.parameter = parameter
    request.protoFile = [file]
    return Generator.respond(to: request)
  }

  private func file(_ messages: [Google.DescriptorProto]) -> Google.FileDescriptorProto {
    Google.FileDescriptorProto(
      name: "a/b.proto", package: "x.y.v1", messageType: messages, syntax: "proto3")
  }

  private func field(
    _ name: String, _ number: Int32, _ type: Google.FieldDescriptorProto.TypeEnum,
    _ typeName: String? = nil
  ) -> Google.FieldDescriptorProto {
    Google.FieldDescriptorProto(
      name: name, number: number, label: .optional, type: type, typeName: typeName)
  }

  private let service = Google.ServiceDescriptorProto(
    name: "Shapes",
    method: [
      .init(name: "One", inputType: ".x.y.v1.M", outputType: ".x.y.v1.M"),
      .init(name: "Out", inputType: ".x.y.v1.M", outputType: ".x.y.v1.M", serverStreaming: true),
      .init(name: "In", inputType: ".x.y.v1.M", outputType: ".x.y.v1.M", clientStreaming: true),
      .init(
        name: "Both", inputType: ".x.y.v1.M", outputType: ".x.y.v1.M", clientStreaming: true,
        serverStreaming: true),
    ])

  @Test func filesAndNames() throws {
    var input = file([.init(name: "M", field: [field("snake_case", 1, .string)])])
    input.service = [service]
    let response = respond(input)
    #expect(response.error == nil)
    #expect(response.supportedFeatures == 3)
    #expect(response.file.map(\.name) == ["a.b.pb.swift"])
    let messages = try #require(response.file[0].content)
    #expect(messages.contains("public enum XYV1 {}"))
    #expect(messages.contains("public var snakeCase: Swift::String\n"))
    #expect(messages.contains("public static let bProto"))
    #expect(respond(input, "services=false").file.count == 1)
    #expect(respond(input, "services=none").file.count == 1)
    let client = try #require(respond(input, "services=client").file.last?.content)
    #expect(client.contains("struct ShapesClient") && !client.contains("ShapesService"))
    let server = try #require(respond(input, "services=server").file.last?.content)
    #expect(!server.contains("ShapesClient") && server.contains("protocol ShapesService"))
    let binary = try #require(respond(input, "formats=binary").file.last?.content)
    #expect(
      messages.contains("base64: \"\"\"\n") && binary.contains("base64: \"\", dependencies: { [] }")
    )
    #expect(respond(input, "formats=all").file == response.file)
    #expect(respond(input, "formats=xml").error?.contains("formats") == true)
    #expect(respond(input, "names=path").file[0].name == "a/b.pb.swift")
    #expect(respond(input, "names=base").file[0].name == "b.pb.swift")
    #expect(respond(input, "names=odd").error != nil)
  }

  /// Stubs in a module of their own name the messages' module, and declare nothing twice.
  @Test func stubsAlone() throws {
    var input = file([.init(name: "M")])
    input.service = [service]
    let package = input.package ?? ""
    let stubs = respond(input, "messages=false,module=Stubs,import=\(package):Kept::Space").file
    #expect(stubs.map(\.name) == ["a.b.grpc.swift"])
    let source = try #require(stubs.first?.content)
    #expect(source.contains("public import Kept\n") && source.contains("Kept::Space.M"))
    #expect(source.contains("extension Space {\n  public protocol"))
    #expect(!source.contains("struct M") && !source.contains("base64") && !source.contains("enum "))
    // In the module of the messages they are found where the messages would have been.
    let beside = try #require(respond(input, "messages=false,namespace=Space").file.first?.content)
    #expect(beside.contains("extension Space {") && !beside.contains("enum Space"))
    #expect(respond(file([.init(name: "M")]), "messages=false").file.isEmpty)
    #expect(respond(input, "messages=true").file == respond(input, "").file)
    #expect(respond(input, "messages=no").error != nil)
  }

  /// At most 25 lines and 1 KB of source for an rpc.
  @Test func stubs() throws {
    var input = file([.init(name: "M")])
    input.service = [service]
    let code = try #require(respond(input, "namespace=N,module=Mod").file.last?.content)
    let start = try #require(code.firstRange(of: "public protocol")).lowerBound
    let stubs = code[start...]
    let lines = [
      "public protocol ShapesService: VencejoRPC::GeneratedService {",
      "public struct ShapesClient: VencejoRPC::ServiceClient {",
      "func one(_ request: Mod::N.M, _ context: VencejoRPC::ServerContext) async throws -> Mod::N.M",
      ".bidirectional(\"/x.y.v1.Shapes/Both\", self.both),",
      "self.channel.clientStreaming(\"/x.y.v1.Shapes/In\", options)",
      "throw VencejoRPC::RPCError.unimplemented(\"/x.y.v1.Shapes/One\")",
    ]
    for line in lines { #expect(stubs.contains(line)) }
    #expect(stubs.utf8.count < 4 * 1024)
    #expect(stubs.split(separator: "\n").count < 4 * 25)
  }

  @Test func deprecated() throws {
    var old = field("old", 1, .string)
    old.options = .init(deprecated: true)
    var input = file([.init(name: "M", field: [old, field("new", 2, .string)])])
    input.enumType = [
      .init(name: "E", value: [.init(name: "E_A", number: 0), .init(name: "E_B", number: 1)])
    ]
    input.enumType[0].value[1].options = .init(deprecated: true)
    let code = try #require(respond(input).file[0].content)
    #expect(code.components("@available(*, deprecated") == 2)
    #expect(code.contains("[.a, .init(rawValue: 1)]"))
  }

  /// A literal of each value would take the compiler a gigabyte.
  @Test func largeAndNegativeEnums() throws {
    var input = file([])
    input.syntax = nil
    input.enumType = [
      .init(name: "E", value: (-3..<300).map { .init(name: "V\($0 + 3)", number: $0) })
    ]
    let code = try #require(respond(input).file[0].content)
    #expect(code.contains("case (-3)...299: true"))
    #expect(code.contains("([(-3)...299] as [Swift::ClosedRange<Swift::Int32>]).flatMap"))
  }

  @Test func visibility() throws {
    let response = respond(file([.init(name: "M")]), "visibility=internal")
    #expect(response.file[0].content?.contains("public") == false)
  }

  @Test(arguments: [
    "nonsense", "visibility=private", "import=x", "import=a:b", "services=yes", "namespace=",
  ])
  func mistakesInOptions(parameter: String) {
    let response = respond(file([]), parameter)
    #expect(response.error != nil)
    #expect(response.file.isEmpty)
  }

  @Test func options() throws {
    let options = try GeneratorOptions(parameter: "namespace=A,import=p.q:Mod::Space")
    #expect(options.namespace == "A")
    #expect(options.imports["p.q"] == .init(module: "Mod", namespace: "Space"))
  }

  /// protoc never sends such, but nothing may trap.
  @Test func brokenDescriptors() {
    #expect(respond(file([.init(name: "M", field: [field("f", 1, .message, ".no")])])).error != nil)
    #expect(respond(file([.init(field: [.init()])])).error == nil)
    var request = Google.CodeGeneratorRequest()
    request.fileToGenerate = ["missing.proto"]
    #expect(Generator.respond(to: request).error != nil)
  }

  /// Large and recursive messages keep their fields in a box, others do not.
  @Test func boxes() throws {
    let many = (1...7).map { field("f\($0)", Int32($0), .string) }
    let content = try #require(
      respond(
        file([
          .init(name: "Small", field: Array(many.prefix(5))), .init(name: "Large", field: many),
          .init(name: "Knot", field: [field("knot", 1, .message, ".x.y.v1.Knot")]),
          .init(name: "Ping", field: [field("pong", 1, .message, ".x.y.v1.Pong")]),
          .init(name: "Pong", field: [field("ping", 1, .message, ".x.y.v1.Ping")]),
        ])
      ).file[0].content)
    func isBoxed(_ name: String) -> Bool {
      let body = content.split(separator: "struct \(name): ")[1]
      return body.split(separator: "VencejoProtobuf::Message {")[0].contains("Boxed<Storage>")
    }
    #expect(!isBoxed("Small"))
    #expect(isBoxed("Large"))
    #expect(isBoxed("Knot"))
    #expect(isBoxed("Ping") != isBoxed("Pong"))
  }

  @Test func comments() throws {
    var input = file([.init(name: "M", field: [field("f", 1, .bool)])])
    input.sourceCodeInfo = .init(location: [
      .init(path: [4, 0], leadingComments: " A message.\n\n With two lines. \n"),
      .init(path: [4, 0, 2, 0], trailingComments: " Behind.\n"),
    ])
    let content = try #require(respond(input).file[0].content)
    #expect(content.contains("  /// A message.\n  ///\n  /// With two lines.\n  public struct M"))
    #expect(content.contains("    /// Behind.\n    public var f: Swift::Bool\n"))
  }
}

extension String {
  /// How often a text stands in this one.
  fileprivate func components(_ text: String) -> Int {
    ranges(of: text).count
  }
}
