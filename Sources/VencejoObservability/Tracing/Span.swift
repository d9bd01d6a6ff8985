public import VencejoRPC

/// What happened between two moments of a trace: here, one call on one side.
public struct Span: Sendable {
  public enum Kind: Sendable, Hashable {
    case server, client
  }

  public let context: TraceContext
  /// Nil for the root.
  public let parentSpanID: UInt64?
  /// `package.Service/Method`.
  public let name: String
  public let kind: Kind
  /// Nanoseconds since 1970.
  public let start: UInt64
  public let end: UInt64
  public let status: StatusCode
  /// The status' message.
  public let message: String
  public let attributes: [(key: String, value: String)]

  /// Whether the span counts as failed: any status but OK on a client, on a server those that
  /// are its own fault (OpenTelemetry's conventions for gRPC).
  public var isError: Bool {
    switch kind {
    case .client: status != .ok
    case .server:
      [
        .unknown, .deadlineExceeded, .unimplemented, .internalError, .unavailable, .dataLoss,
      ].contains(status)
    }
  }
}
