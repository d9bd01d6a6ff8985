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

  /// Runs the rest of the chain and the call, to its end. Throws the error it ends with.
  /// Call it once.
  public func proceed() async throws { try await call.proceed(from: level) }
}
