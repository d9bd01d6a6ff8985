public import VencejoProtobuf

/// What a server offers under one name. Generated protocols refine it; a service is
/// mounted by giving it to a `Server`.
public protocol Service: Sendable {
  /// Name and file, for reflection.
  static var descriptor: ServiceDescriptor { get }
  /// One entry per rpc.
  var methods: [ServerMethod] { get }
  /// All names it answers to; `descriptor` alone unless the service says otherwise.
  var descriptors: [ServiceDescriptor] { get }
  /// Tells the service what it is served with: before the server serves, and whenever a service
  /// comes or goes.
  func mounted(with services: [any Service])
  /// Where the handlers run; `.pool` unless the service says otherwise.
  var execution: HandlerExecution { get }
  /// Handlers of the service that may run at a time on a server; nil, unless the service says
  /// otherwise, for as many as come. A call beyond is answered RESOURCE_EXHAUSTED, or refused
  /// (`Server.Configuration.refusesBeyondLimits`).
  var maxConcurrentCalls: Int? { get }
}

extension Service {
  public var descriptors: [ServiceDescriptor] { [Self.descriptor] }
  public func mounted(with services: [any Service]) {}
  public var execution: HandlerExecution { .pool }
  public var maxConcurrentCalls: Int? { nil }
}

/// Where handlers run.
public enum HandlerExecution: Sendable, Hashable {
  /// On Swift's cooperative pool: a handler may compute for as long as it likes.
  case pool
  /// On the connection's event loop, without a hop: for handlers that never block. While
  /// one computes, every connection of its loop waits.
  case loop
}

/// One rpc of a service: its path and a handler that works on bytes.
public struct ServerMethod: Sendable {
  enum Body: Sendable {
    /// A message's bytes to a sealed frame.
    case unary(@Sendable ([UInt8], ServerContext) async throws -> [UInt8])
    /// One message's bytes; the handler sends what it likes.
    case serverStreaming(@Sendable ([UInt8], ServerContext) async throws -> Void)
    case clientStreaming(@Sendable (ServerContext) async throws -> [UInt8])
    case bidirectional(@Sendable (ServerContext) async throws -> Void)
  }

  /// `/package.Service/Method`, as in the `:path` field.
  public let path: String
  /// The full name of the request's message.
  public let requestTypeName: String
  let body: Body

  var isUnary: Bool { if case .unary = body { true } else { false } }

  var takesOneRequest: Bool {
    switch body {
    case .unary, .serverStreaming: true
    case .clientStreaming, .bidirectional: false
    }
  }
}

extension ServerMethod {
  public static func unary<Request: Message, Response: Message>(
    _ path: String,
    _ handler: @escaping @Sendable (Request, ServerContext) async throws -> Response
  ) -> ServerMethod {
    ServerMethod(
      path: path, requestTypeName: Request.messageName,
      body: .unary { bytes, context in
        try frame(await handler(decode(bytes), context))
      })
  }

  public static func serverStreaming<Request: Message, Response: Message>(
    _ path: String,
    _ handler:
      @escaping @Sendable (Request, ResponseWriter<Response>, ServerContext) async throws
      -> Void
  ) -> ServerMethod {
    ServerMethod(
      path: path, requestTypeName: Request.messageName,
      body: .serverStreaming { bytes, context in
        try await handler(decode(bytes), ResponseWriter(call: context.call), context)
      })
  }

  public static func clientStreaming<Request: Message, Response: Message>(
    _ path: String,
    _ handler: @escaping @Sendable (RequestStream<Request>, ServerContext) async throws -> Response
  ) -> ServerMethod {
    ServerMethod(
      path: path, requestTypeName: Request.messageName,
      body: .clientStreaming { context in
        try frame(await handler(RequestStream(call: context.call), context))
      })
  }

  public static func bidirectional<Request: Message, Response: Message>(
    _ path: String,
    _ handler:
      @escaping @Sendable (
        RequestStream<Request>, ResponseWriter<Response>, ServerContext
      ) async throws -> Void
  ) -> ServerMethod {
    ServerMethod(
      path: path, requestTypeName: Request.messageName,
      body: .bidirectional { context in
        try await handler(
          RequestStream(call: context.call), ResponseWriter(call: context.call), context)
      })
  }

  static func decode<Request: Message>(_ bytes: [UInt8]) throws(RPCError) -> Request {
    do {
      return try Request(serializedBytes: bytes)
    } catch {
      throw RPCError(.internalError, "the request is no \(Request.messageName): \(error)")
    }
  }

  private static func frame(_ response: some Message) -> [UInt8] {
    var frame = response.serializedBytes(reservingPrefix: Deframer.prefixLength)
    frame.sealFrame()
    return frame
  }
}

/// For generated code: ``Service``, under a name no message has. Swift 6.3 aborts at a protocol
/// that refines another one whose name a type beside it has too, as googleapis'
/// `google.api.serviceusage.v1.Service` would, module selector or not.
public typealias GeneratedService = Service
