public import VencejoProtobuf
public import VencejoRPC

/// Refuses messages that break a rule, before a handler sees them or, on a client, before they
/// travel.
///
/// ```swift
/// let validation = Validation()
///   .required(Chat.SendMessageRequest.self, "parent") { $0.parent.isEmpty }
///   .rule(for: Chat.SendMessageRequest.self) { request in
///     request.content == nil ? [("content", "there is nothing to send")] : []
///   }
/// ```
///
/// A rule holds for a message of its type wherever it is the request of a method, each message
/// of a stream included. The call ends with INVALID_ARGUMENT and a google.rpc.BadRequest that
/// lists the fields.
public struct Validation: ServerInterceptor, ClientInterceptor {
  /// The path of a field as its .proto names it, and what is wrong with it.
  public typealias Violation = (field: String, description: String)

  private typealias Check = @Sendable ([UInt8]) throws -> [Violation]

  private var checks: [String: [Check]] = [:]

  public init() {}

  /// Adds a rule: the closure tells what is wrong with a message.
  public func rule<M: Message>(
    for type: M.Type, _ violations: @escaping @Sendable (M) -> [Violation]
  ) -> Validation {
    var copy = self
    copy.checks[M.messageName, default: []].append { violations(try M(serializedBytes: $0)) }
    return copy
  }

  /// Adds the rule that a field must not be missing.
  public func required<M: Message>(
    _ type: M.Type, _ field: String, isMissing: @escaping @Sendable (M) -> Bool
  ) -> Validation {
    rule(for: type) { isMissing($0) ? [(field, "is required")] : [] }
  }

  public func intercept(_ call: ServerInterception) async throws {
    if let transform = transform(call.requestTypeName) { call.mapRequests(transform) }
    try await call.proceed()
  }

  public func intercept(_ call: ClientInterception) async throws {
    if let transform = transform(call.requestTypeName) { call.mapRequests(transform) }
    try await call.proceed()
  }

  private func transform(
    _ type: String
  ) -> (@Sendable ([UInt8]) throws(RPCError) -> [UInt8])? {
    guard let checks = checks[type] else { return nil }
    let transform: @Sendable ([UInt8]) throws(RPCError) -> [UInt8] = { bytes throws(RPCError) in
      try Self.apply(checks, bytes, type)
      return bytes
    }
    return transform
  }

  private static func apply(
    _ checks: [Check], _ bytes: [UInt8], _ type: String
  ) throws(RPCError) {
    var violations: [Violation] = []
    do {
      for check in checks { violations += try check(bytes) }
    } catch {
      throw RPCError(.internalError, "the request is no \(type): \(error)")
    }
    guard let first = violations.first else { return }
    var error = RPCError(.invalidArgument, "\(first.field): \(first.description)")
    error.add(
      detail: GoogleRPC.BadRequest(
        fieldViolations: violations.map { .init(field: $0.field, description: $0.description) }))
    throw error
  }
}
