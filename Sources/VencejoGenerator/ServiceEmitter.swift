import VencejoProtobuf

/// Prints the stubs of one service: a protocol for servers, a struct for clients.
struct ServiceEmitter {
  struct Method {
    let path: String
    let name: String
    let request: String
    let response: String
    let clientStreaming: Bool
    let serverStreaming: Bool
    let doc: String?

    /// The shape, as the members of channel and `ServerMethod` are called.
    var shape: String {
      switch (clientStreaming, serverStreaming) {
      case (false, false): "unary"
      case (false, true): "serverStreaming"
      case (true, false): "clientStreaming"
      case (true, true): "bidirectional"
      }
    }

    /// The handler's signature.
    var handler: String {
      let input =
        clientStreaming ? "requests: VencejoRPC::RequestStream<\(request)>" : "request: \(request)"
      let output = serverStreaming ? ", _ out: VencejoRPC::ResponseWriter<\(response)>" : ""
      return "func \(name)(_ \(input)\(output), _ context: VencejoRPC::ServerContext) async throws"
        + (serverStreaming ? "" : " -> \(response)")
    }
  }

  let access: String
  let fullName: String
  let protocolName: String
  let clientName: String
  let fileDescriptor: String
  let doc: String?
  let methods: [Method]

  init(
    _ service: Google.ServiceDescriptorProto, fullName: String, index: Int32,
    context: MessageEmitter.Context, taken: inout Set<String>
  ) throws(GeneratorError) {
    access = context.access
    fileDescriptor = context.fileDescriptor
    self.fullName = fullName
    let name = Names.upperCamel(service.name ?? "")
    var stem = name.hasSuffix("Service") && name != "Service" ? String(name.dropLast(7)) : name
    if taken.contains(stem + "Service") || taken.contains(stem + "Client") { stem = name }
    while taken.contains(stem + "Service") || taken.contains(stem + "Client") { stem += "_" }
    taken.formUnion([stem + "Service", stem + "Client"])
    protocolName = stem + "Service"
    clientName = stem + "Client"
    doc = context.comments[[6, index]]
    var methods: [Method] = []
    var names = UniqueNames()
    for (number, method) in service.method.enumerated() {
      methods.append(
        Method(
          path: "/\(fullName)/\(method.name ?? "")",
          name: names.unique(Names.method(method.name ?? ""), Int32(number) + 1),
          request: try context.types.type(method.inputType).reference,
          response: try context.types.type(method.outputType).reference,
          clientStreaming: method.clientStreaming ?? false,
          serverStreaming: method.serverStreaming ?? false,
          doc: context.comments[[6, index, 2, Int32(number)]]))
    }
    self.methods = methods
  }

  func emit(
    _ services: GeneratorOptions.Services, namespace: String, to printer: inout Printer
  ) {
    printer.block("extension \(namespace) {") { printer in
      if services.contains(.server) { emitProtocol(to: &printer) }
      if services == .both { printer.line() }
      if services.contains(.client) { emitClient(to: &printer) }
    }
    if services.contains(.server) {
      printer.line()
      emitDefaults(namespace: namespace, to: &printer)
    }
  }

  private func emitProtocol(to printer: inout Printer) {
    printer.doc(doc)
    printer.block("\(access)protocol \(protocolName): VencejoRPC::GeneratedService {") { printer in
      for method in methods {
        printer.doc(method.doc)
        printer.line(method.handler)
      }
    }
  }

  private func emitClient(to printer: inout Printer) {
    printer.doc(doc)
    printer.block("\(access)struct \(clientName): VencejoRPC::ServiceClient {") { printer in
      printer.line("\(access)let channel: VencejoRPC::Channel")
      printer.line(
        "\(access)init(_ channel: VencejoRPC::Channel) { self.channel = channel }")
      for method in methods {
        let request = method.clientStreaming ? "" : "_ request: \(method.request), "
        let options = "_ options: VencejoRPC::CallOptions = .init()"
        let argument = method.clientStreaming ? "" : "request, "
        let pair = "<\(method.request), \(method.response)>"
        let call = "self.channel.\(method.shape)(\"\(method.path)\", \(argument)options)"
        let result =
          switch method.shape {
          case "unary": "async throws(VencejoRPC::RPCError) -> \(method.response)"
          case "serverStreaming": "-> VencejoRPC::ServerStreamingCall<\(method.response)>"
          case "clientStreaming": "-> VencejoRPC::ClientStreamingCall\(pair)"
          default: "-> VencejoRPC::BidirectionalCall\(pair)"
          }
        printer.doc(method.doc)
        printer.block("\(access)func \(method.name)(\(request)\(options)) \(result) {") {
          $0.line(method.shape == "unary" ? "try await \(call)" : call)
        }
      }
    }
  }

  private func emitDefaults(namespace: String, to printer: inout Printer) {
    printer.block("extension \(namespace).\(protocolName) {") { printer in
      printer.block("\(access)static var descriptor: VencejoProtobuf::ServiceDescriptor {") {
        $0.line(".init(fullName: \"\(fullName)\", file: \(fileDescriptor))")
      }
      printer.block("\(access)var methods: [VencejoRPC::ServerMethod] {") { printer in
        printer.block("[", end: "]") { printer in
          for method in methods {
            printer.line(".\(method.shape)(\"\(method.path)\", self.\(method.name)),")
          }
        }
      }
      for method in methods {
        printer.block("\(access)\(method.handler) {") {
          $0.line("throw VencejoRPC::RPCError.unimplemented(\"\(method.path)\")")
        }
      }
    }
  }
}
