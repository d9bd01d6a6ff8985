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
  /// Whether handlers of streams of requests start with the client's first message, or its end,
  /// rather than with the call; false, unless the service says otherwise.
  ///
  /// A stream on which nothing was said yet then costs a third of the memory, as it has no task.
  /// Not for handlers that speak first: clients may wait for that before they send. Where the
  /// client sent metadata of its own, which may be refused or answered, they start with the call.
  var startsWithFirstMessage: Bool { get }
}

extension Service {
  public var descriptors: [ServiceDescriptor] { [Self.descriptor] }
  public func mounted(with services: [any Service]) {}
  public var execution: HandlerExecution { .pool }
  public var maxConcurrentCalls: Int? { nil }
  public var startsWithFirstMessage: Bool { false }
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
  enum Kind: Sendable { case unary, serverStreaming, clientStreaming, bidirectional }

  /// `/package.Service/Method`, as in the `:path` field.
  public let path: String
  /// The full name of the request's message.
  public let requestTypeName: String
  let kind: Kind
  /// Takes the one request from the call, where there is one; returns the one response as a
  /// sealed frame.
  let body: @Sendable (ServerContext) async throws -> [UInt8]?
  /// The body of two streams, without the function around it that hides its types: its frame
  /// would be a part of each idle stream. For calls that nobody intercepts.
  private(set) var streams: StreamsBody<RawMessage, RawMessage>?
  /// What may begin the call in the body's place, on the loop, when nobody intercepts it.
  var attend: (@Sendable (ServerContext) -> Void)?

  var isUnary: Bool { kind == .unary }

  var takesOneRequest: Bool { kind == .unary || kind == .serverStreaming }

  private init<Request: Message>(
    _ kind: Kind, _ path: String, _ request: Request.Type,
    _ body: @escaping @Sendable (ServerContext) async throws -> [UInt8]?
  ) {
    self.kind = kind
    self.path = path
    requestTypeName = Request.messageName
    self.body = body
  }
}

/// A handler of two streams.
struct StreamsBody<Request: Message, Response: Message>: Sendable {
  let run:
    @Sendable (
      RequestStream<Request>, ResponseWriter<Response>, ServerContext
    ) async throws -> Void
}

extension ServerMethod {
  public static func unary<Request: Message, Response: Message>(
    _ path: String,
    _ handler: @escaping @Sendable (Request, ServerContext) async throws -> Response
  ) -> ServerMethod {
    ServerMethod(.unary, path, Request.self) { context in
      try frame(await handler(decode(context.call.takeRequest()), context))
    }
  }

  public static func serverStreaming<Request: Message, Response: Message>(
    _ path: String,
    _ handler:
      @escaping @Sendable (Request, ResponseWriter<Response>, ServerContext) async throws
      -> Void
  ) -> ServerMethod {
    ServerMethod(.serverStreaming, path, Request.self) { context in
      try await handler(
        decode(context.call.takeRequest()), ResponseWriter(call: context.call), context)
      return nil
    }
  }

  public static func clientStreaming<Request: Message, Response: Message>(
    _ path: String,
    _ handler: @escaping @Sendable (RequestStream<Request>, ServerContext) async throws -> Response
  ) -> ServerMethod {
    ServerMethod(.clientStreaming, path, Request.self) { context in
      try frame(await handler(RequestStream(call: context.call), context))
    }
  }

  public static func bidirectional<Request: Message, Response: Message>(
    _ path: String,
    _ handler:
      @escaping @Sendable (
        RequestStream<Request>, ResponseWriter<Response>, ServerContext
      ) async throws -> Void
  ) -> ServerMethod {
    var method = ServerMethod(.bidirectional, path, Request.self) { context in
      try await handler(
        RequestStream(call: context.call), ResponseWriter(call: context.call), context)
      return nil
    }
    // Both streams are a reference to the call, whatever their messages' types: a function that
    // takes them is called in the same way for all types. Within a structure it is kept as it is.
    method.streams = unsafeBitCast(
      StreamsBody(run: handler), to: StreamsBody<RawMessage, RawMessage>.self)
    return method
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
