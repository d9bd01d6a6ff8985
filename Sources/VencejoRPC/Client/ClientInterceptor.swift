public import VencejoProtobuf

/// Sees every call of a channel: reads and changes options, metadata, messages and the
/// status.
///
/// Interceptors run in the order they are given, the first outermost. `proceed()` returns
/// when the call has ended; its messages pass the transforms set before.
public protocol ClientInterceptor: Sendable {
  /// Goes on with `try await call.proceed()`. An error thrown here, whether the call's or
  /// another, is what the caller sees.
  func intercept(_ call: ClientInterception) async throws
}

/// A call on its way to the server.
public struct ClientInterception: Sendable {
  let call: ClientCall
  let level: Int

  /// `/package.Service/Method`.
  public var method: String { call.path }

  /// The full name of the request's message, as `package.Message`; empty for a call on bytes.
  public var requestTypeName: String { call.requestTypeName }

  /// What the caller says of the call, metadata included. Changes have an effect before
  /// `proceed()`.
  public var options: CallOptions {
    get { call.options }
    nonmutating set { call.options = newValue }
  }

  /// Passes the bytes of each request message through the transform. The last one set is
  /// the first one applied: what the outermost interceptor sees is what travels.
  public func mapRequests(_ transform: @escaping @Sendable ([UInt8]) throws(RPCError) -> [UInt8]) {
    call.transforms?.addOutgoing(transform)
  }

  /// Passes the bytes of each response message through the transform. The last one set is
  /// the last one applied.
  public func mapResponses(_ transform: @escaping @Sendable ([UInt8]) throws(RPCError) -> [UInt8]) {
    call.transforms?.addIncoming(transform)
  }

  /// Passes the metadata before the first message through the transform, the innermost
  /// interceptor's first.
  public func mapInitialMetadata(_ transform: @escaping @Sendable (Metadata) -> Metadata) {
    call.transforms?.addInitial(transform)
  }

  /// The same for the metadata that came with a status OK; an error carries its own.
  public func mapTrailingMetadata(_ transform: @escaping @Sendable (Metadata) -> Metadata) {
    call.transforms?.addTrailing(transform)
  }

  /// What the channel was made for, as `dns:///example.org:443`.
  public var target: String { call.targetName }

  /// Runs the rest of the chain and the call, to its end. Throws the error it ends with.
  /// Call it once.
  public func proceed() async throws { try await call.proceed(from: level) }
}

extension ClientInterception {
  /// `mapRequests` on values. A message that is none of the type, or an error other than
  /// `RPCError`, ends the call with INTERNAL.
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
