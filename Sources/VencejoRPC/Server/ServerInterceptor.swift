public import VencejoProtobuf

/// Sees every call of a server: reads and changes metadata, messages and the status.
///
/// Interceptors run in the order they are given, the first outermost: its code before
/// `proceed()` runs first, its code after it last. Streams are open meanwhile: `proceed()`
/// returns when the handler has returned, and messages pass the transforms set before.
public protocol ServerInterceptor: Sendable {
  /// Goes on with `try await call.proceed()`. An error thrown here, whether the handler's or
  /// another, is the call's status.
  func intercept(_ call: ServerInterception) async throws
}

/// A call on its way to the handler.
public struct ServerInterception: Sendable {
  let chain: ServerChain
  let level: Int

  public var context: ServerContext { ServerContext(call: chain.call) }

  /// The full name of the request's message, as `package.Message`.
  public var requestTypeName: String { chain.call.requestTypeName }

  /// The client's metadata as later interceptors and the handler will see it.
  public var metadata: Metadata {
    get { chain.call.metadata }
    nonmutating set { chain.call.replaceMetadata(newValue) }
  }

  /// Passes the bytes of each request message through the transform. The last one set is
  /// the last one applied. An error thrown in it reaches the handler's reader.
  public func mapRequests(_ transform: @escaping @Sendable ([UInt8]) throws(RPCError) -> [UInt8]) {
    chain.transforms.addIncoming(transform)
  }

  /// Passes the bytes of each response message through the transform. The last one set is
  /// the first one applied: what the outermost interceptor sees is what travels.
  public func mapResponses(_ transform: @escaping @Sendable ([UInt8]) throws(RPCError) -> [UInt8]) {
    chain.transforms.addOutgoing(transform)
  }

  /// Passes the metadata before the first message through the transform, the innermost
  /// interceptor's first.
  public func mapInitialMetadata(_ transform: @escaping @Sendable (Metadata) -> Metadata) {
    chain.transforms.addInitial(transform)
  }

  /// The same for the metadata that goes with a status OK; an error carries its own.
  public func mapTrailingMetadata(_ transform: @escaping @Sendable (Metadata) -> Metadata) {
    chain.transforms.addTrailing(transform)
  }

  /// Runs the rest of the chain and the handler. Call it once.
  public func proceed() async throws { try await chain.proceed(from: level) }
}

extension ServerInterception {
  /// `mapRequests` on values. A message that is none of the type, or an error other than
  /// `RPCError`, is answered INTERNAL.
  public func mapRequests<M: Message>(
    as type: M.Type, _ change: @escaping @Sendable (inout M) throws -> Void
  ) {
    mapRequests(MessageTransforms.onValues(change))
  }

  /// `mapResponses` on values.
  public func mapResponses<M: Message>(
    as type: M.Type, _ change: @escaping @Sendable (inout M) throws -> Void
  ) {
    mapResponses(MessageTransforms.onValues(change))
  }
}

/// What the interceptions of one call share.
final class ServerChain: Sendable {
  let call: ServerCall
  let transforms: MessageTransforms
  private let interceptors: [any ServerInterceptor]
  private let handler: @Sendable () async throws -> Void

  init(
    _ call: ServerCall, _ interceptors: [any ServerInterceptor], _ transforms: MessageTransforms,
    handler: @escaping @Sendable () async throws -> Void
  ) {
    self.call = call
    self.interceptors = interceptors
    self.transforms = transforms
    self.handler = handler
  }

  func proceed(from level: Int) async throws {
    guard level < interceptors.count else { return try await handler() }
    try await interceptors[level].intercept(ServerInterception(chain: self, level: level + 1))
  }
}
