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

  /// Runs the rest of the chain and the handler. Call it once.
  public func proceed() async throws { try await chain.proceed(from: level) }
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
