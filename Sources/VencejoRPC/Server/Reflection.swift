import Synchronization
public import VencejoProtobuf

/// Tells clients what the server offers, from the descriptors embedded in generated code
/// (gRPC "Server Reflection Protocol", versions v1 and v1alpha).
public final class Reflection: Service {
  private let index = Mutex(Index())

  public init() {}

  public static var descriptor: ServiceDescriptor { ReflectionV1.descriptor }
  public var descriptors: [ServiceDescriptor] {
    [ReflectionV1.descriptor, ReflectionV1Alpha.descriptor]
  }
  public var execution: HandlerExecution { .loop }
  public var startsWithFirstMessage: Bool { true }

  /// Both versions have the same messages on the wire.
  public var methods: [ServerMethod] {
    descriptors.map {
      .bidirectional("/\($0.fullName)/ServerReflectionInfo", self.serverReflectionInfo)
    }
  }

  public func mounted(with services: [any Service]) {
    let descriptors = services.flatMap(\.descriptors)
    index.withLock { $0 = Index(descriptors) }
  }

  private func serverReflectionInfo(
    _ requests: RequestStream<GRPCReflection.ServerReflectionRequest>,
    _ out: ResponseWriter<GRPCReflection.ServerReflectionResponse>, _ context: ServerContext
  ) async throws {
    for try await request in requests {
      var response = GRPCReflection.ServerReflectionResponse()
      response.validHost = request.host
      response.originalRequest = request
      response.messageResponse = index.withLock { $0.answer(request) }
      try await out.send(response)
    }
  }
}

private enum ReflectionV1: GRPCReflection.ServerReflectionService {}
private enum ReflectionV1Alpha: GRPCReflectionAlpha.ServerReflectionService {}

/// The files that a server's services need, by path and by what they declare.
private struct Index {
  typealias Request = GRPCReflection.ServerReflectionRequest
  typealias Response = GRPCReflection.ServerReflectionResponse

  private var services: [String] = []
  private var files: [String: FileDescriptor] = [:]
  private var pathOfSymbol: [String: String] = [:]
  /// Path of the file that declares an extension, by extended type and number.
  private var extensions: [String: [Int32: String]] = [:]

  init() {}

  init(_ descriptors: [ServiceDescriptor]) {
    services = descriptors.map(\.fullName).sorted()
    var queue = descriptors.map(\.file)
    while let file = queue.popLast() {
      guard files.updateValue(file, forKey: file.path) == nil else { continue }
      queue += file.dependencies
      if let proto = try? Google.FileDescriptorProto(serializedBytes: file.serialized) {
        declare(proto, in: file.path)
      }
    }
  }

  private mutating func declare(_ file: Google.FileDescriptorProto, in path: String) {
    let scope = file.package ?? ""
    for message in file.messageType { declare(message, scope, path) }
    for value in file.enumType { declare(value, scope, path) }
    declare(extensions: file.extension, scope, path)
    for service in file.service {
      let name = join(scope, service.name)
      pathOfSymbol[name] = path
      for method in service.method { pathOfSymbol[join(name, method.name)] = path }
    }
  }

  private mutating func declare(
    _ message: Google.DescriptorProto, _ scope: String, _ path: String
  ) {
    let name = join(scope, message.name)
    pathOfSymbol[name] = path
    for field in message.field { pathOfSymbol[join(name, field.name)] = path }
    for oneof in message.oneofDecl { pathOfSymbol[join(name, oneof.name)] = path }
    for nested in message.nestedType { declare(nested, name, path) }
    for value in message.enumType { declare(value, name, path) }
    declare(extensions: message.extension, name, path)
  }

  private mutating func declare(
    _ type: Google.EnumDescriptorProto, _ scope: String, _ path: String
  ) {
    let name = join(scope, type.name)
    pathOfSymbol[name] = path
    // Values are siblings of their type, as in C++ (descriptor.proto).
    for value in type.value {
      pathOfSymbol[join(scope, value.name)] = path
      pathOfSymbol[join(name, value.name)] = path
    }
  }

  private mutating func declare(
    extensions fields: [Google.FieldDescriptorProto], _ scope: String, _ path: String
  ) {
    for field in fields {
      pathOfSymbol[join(scope, field.name)] = path
      guard let extendee = field.extendee, let number = field.number else { continue }
      extensions[String(extendee.drop { $0 == "." }), default: [:]][number] = path
    }
  }

  private func join(_ scope: String, _ name: String?) -> String {
    scope.isEmpty ? name ?? "" : "\(scope).\(name ?? "")"
  }

  func answer(_ request: Request) -> Response.MessageResponse {
    switch request.messageRequest {
    case .listServices:
      return .listServicesResponse(.init(service: services.map { .init(name: $0) }))
    case .fileByFilename(let path):
      return file(path, "file \(path)")
    case .fileContainingSymbol(let symbol):
      return file(pathOfSymbol[symbol], "symbol \(symbol)")
    case .fileContainingExtension(let wanted):
      return file(
        extensions[wanted.containingType]?[wanted.extensionNumber],
        "extension \(wanted.extensionNumber) of \(wanted.containingType)")
    case .allExtensionNumbersOfType(let type):
      guard pathOfSymbol[type] != nil else { return notFound("type \(type)") }
      return .allExtensionNumbersResponse(
        .init(baseTypeName: type, extensionNumber: (extensions[type] ?? [:]).keys.sorted()))
    case nil:
      return .errorResponse(
        .init(
          errorCode: Int32(StatusCode.invalidArgument.rawValue),
          errorMessage: "the request asks for nothing"))
    }
  }

  /// The file and what it imports: a client then needs no second request.
  private func file(_ path: String?, _ what: String) -> Response.MessageResponse {
    guard let path, let root = files[path] else { return notFound(what) }
    var seen: Set<String> = []
    var protos: [[UInt8]] = []
    var queue = [root]
    while let file = queue.popLast() {
      guard seen.insert(file.path).inserted else { continue }
      protos.append(file.serialized)
      queue += file.dependencies
    }
    return .fileDescriptorResponse(.init(fileDescriptorProto: protos))
  }

  private func notFound(_ what: String) -> Response.MessageResponse {
    .errorResponse(
      .init(errorCode: Int32(StatusCode.notFound.rawValue), errorMessage: "unknown \(what)"))
  }
}
