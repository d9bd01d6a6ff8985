import VencejoDescriptors
import VencejoProtobuf
import VencejoRPC

/// Where a command learns of a server's types: from files it is given, or by reflection.
enum TypeSource {
  case files(DescriptorPool)
  case reflection(ReflectionClient)
  /// Reflection, and files for what it does not know.
  case both(DescriptorPool, ReflectionClient)

  static let options: [ArgumentList.Option] = [
    .init("proto", value: true),
    .init("import-path", short: "I", aliases: ["include"], value: true),
    .init("protoset", aliases: ["descriptors"], value: true),
    .init("schema", value: true), .init("reflect-header", value: true),
    .init("use-reflection", aliases: ["reflect"]), .init("reflect-protocol", value: true),
  ]

  static let help = """
      --proto FILE         learn the types from a .proto file, read by protoc, rather than by
                           reflection; may be repeated
      -I, --import-path DIR
                           where .proto files are looked for; may be repeated (default: .)
      --protoset FILE      or from a set of descriptors, as protoc --include_imports
                           --descriptor_set_out writes it; may be repeated
      --schema FILE        a .proto file or a set of descriptors, by its ending; may be repeated
      --use-reflection, --reflect
                           ask the server too, and the files for what it does not know
      --reflect-protocol V grpc-v1 or grpc-v1alpha (default: the first that the server has)
      --reflect-header K:V metadata for reflection only; may be repeated
    """

  /// Whether the arguments name files.
  static func hasFiles(_ arguments: ArgumentList) -> Bool {
    arguments.has("proto") || arguments.has("protoset") || arguments.has("schema")
  }

  /// The files' types; nil when the arguments name none.
  static func files(_ arguments: ArgumentList) throws -> TypeSource? {
    guard hasFiles(arguments) else { return nil }
    var files: [Google.FileDescriptorProto] = []
    let schemas = arguments.all("schema")
    for path in arguments.all("protoset") + schemas.filter({ !$0.hasSuffix(".proto") }) {
      do {
        files += try Google.FileDescriptorSet(serializedBytes: ProtoFiles.read(path)).file
      } catch let error as DecodingError {
        throw ArgumentList.Fault("\(path) is no set of descriptors: \(error)")
      }
    }
    let protos = arguments.all("proto") + schemas.filter { $0.hasSuffix(".proto") }
    if !protos.isEmpty {
      let bytes = try ProtoFiles.compile(protos, includes: arguments.all("import-path"))
      files += try Google.FileDescriptorSet(serializedBytes: bytes).file
    }
    var seen: Set<String> = []
    files = files.filter { seen.insert($0.name ?? "").inserted }
    do {
      return .files(try DescriptorPool(files: files))
    } catch {
      throw ArgumentList.Fault("the files do not fit together: \(error)")
    }
  }

  func services() async throws -> [String] {
    switch self {
    case .files(let pool): pool.serviceNames.sorted()
    case .reflection(let client), .both(_, let client): try await client.services()
    }
  }

  /// All types of the file that declares a symbol, and of those it needs.
  func pool(declaring symbol: String) async throws -> DescriptorPool {
    switch self {
    case .files(let pool): return pool
    case .both(let pool, let client):
      guard let files = try? await client.files(declaring: symbol),
        let found = try? DescriptorPool(files: files)
      else { return pool }
      return found
    case .reflection(let client):
      do {
        return try DescriptorPool(files: try await client.files(declaring: symbol))
      } catch let error as RPCError {
        guard error.code == .unimplemented else { throw error }
        throw RPCError(
          .unimplemented,
          "the server offers no reflection, so its messages are unknown: name them with --proto "
            + "or --protoset", origin: .remote)
      }
    }
  }

  /// A service; throws a `Fault` that suggests another when there is none of the name.
  func service(_ name: String) async throws -> (ServiceType, DescriptorPool) {
    let pool: DescriptorPool
    do {
      pool = try await self.pool(declaring: name)
    } catch let error as RPCError {
      guard error.code == .notFound else { throw error }
      throw try await unknown(service: name)
    }
    if let service = pool.service(name) { return (service, pool) }
    if case .files = self { throw try await unknown(service: name) }
    throw ArgumentList.Fault("\(name) is no service")
  }

  private func unknown(service: String) async throws -> ArgumentList.Fault {
    let known = try await services()
    let close = known.min { editDistance(service, $0) < editDistance(service, $1) }
    let what = if case .files = self { "no file declares a" } else { "the server has no" }
    return ArgumentList.Fault(
      "\(what) service \(service)" + (close.map { " (did you mean \($0)?)" } ?? ""))
  }
}

/// A method and its types.
struct DescribedMethod {
  let service: String
  let name: String
  let path: String
  let input: MessageDescriptor
  let output: MessageDescriptor
  let takesStream: Bool
  let answersStream: Bool

  static func find(
    _ service: String, _ name: String, in source: TypeSource
  ) async throws -> DescribedMethod {
    let (type, pool) = try await source.service(service)
    guard let method = type.method(name) else {
      let names = type.methods.map(\.name).joined(separator: ", ")
      throw ArgumentList.Fault("\(service) has no method \(name); it has \(names)")
    }
    guard let input = pool.message(method.input), let output = pool.message(method.output) else {
      throw RPCError(.internalError, "the description of \(name) leaves out one of its messages")
    }
    return DescribedMethod(
      service: service, name: name, path: method.path, input: input, output: output,
      takesStream: method.clientStreaming, answersStream: method.serverStreaming)
  }

  /// As a .proto file declares it.
  var declaration: String {
    "rpc \(name)(\(takesStream ? "stream " : "")\(input.fullName)) returns "
      + "(\(answersStream ? "stream " : "")\(output.fullName));"
  }

  /// `package.Service/Method` or `package.Service.Method` in two; nil when it is neither.
  static func split(_ method: String) -> (service: String, name: String)? {
    let path = method.drop { $0 == "/" }
    guard let slash = path.lastIndex(of: "/") ?? path.lastIndex(of: "."), slash > path.startIndex,
      path.index(after: slash) < path.endIndex
    else { return nil }
    return (String(path[..<slash]), String(path[path.index(after: slash)...]))
  }
}
