/// A gRPC status code (gRPC "Status codes and their use in gRPC").
///
/// Open, as every enumeration of the wire: a peer's unknown number is kept, though
/// `RPCError` reports it as `unknown`, as the specification asks.
public struct StatusCode: RawRepresentable, Sendable, Hashable {
  public let rawValue: Int

  public init(rawValue: Int) { self.rawValue = rawValue }

  public static var ok: StatusCode { .init(rawValue: 0) }
  public static var cancelled: StatusCode { .init(rawValue: 1) }
  public static var unknown: StatusCode { .init(rawValue: 2) }
  public static var invalidArgument: StatusCode { .init(rawValue: 3) }
  public static var deadlineExceeded: StatusCode { .init(rawValue: 4) }
  public static var notFound: StatusCode { .init(rawValue: 5) }
  public static var alreadyExists: StatusCode { .init(rawValue: 6) }
  public static var permissionDenied: StatusCode { .init(rawValue: 7) }
  public static var resourceExhausted: StatusCode { .init(rawValue: 8) }
  public static var failedPrecondition: StatusCode { .init(rawValue: 9) }
  public static var aborted: StatusCode { .init(rawValue: 10) }
  public static var outOfRange: StatusCode { .init(rawValue: 11) }
  public static var unimplemented: StatusCode { .init(rawValue: 12) }
  /// INTERNAL; `internal` is a word of the language.
  public static var internalError: StatusCode { .init(rawValue: 13) }
  public static var unavailable: StatusCode { .init(rawValue: 14) }
  public static var dataLoss: StatusCode { .init(rawValue: 15) }
  public static var unauthenticated: StatusCode { .init(rawValue: 16) }
}

extension StatusCode: CustomStringConvertible {
  private static let names = [
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
    "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",
    "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
  ]

  /// The name of the specification, as `NOT_FOUND`.
  public var description: String {
    Self.names.indices.contains(rawValue) ? Self.names[rawValue] : "CODE_\(rawValue)"
  }

  /// nil for a name the specification does not have.
  init?(name: String) {
    guard let number = Self.names.firstIndex(of: name) else { return nil }
    self.init(rawValue: number)
  }

  /// Whether the specification defines this number.
  var isDefined: Bool { Self.names.indices.contains(rawValue) }
}

extension StatusCode {
  /// The code for a response whose HTTP status is not 200 and that carries no
  /// `grpc-status` (gRPC "HTTP to gRPC Status Code Mapping").
  static func mapping(httpStatus: Int) -> StatusCode {
    switch httpStatus {
    case 400, 431: .internalError
    case 401: .unauthenticated
    case 403: .permissionDenied
    case 404: .unimplemented
    case 429, 502, 503, 504: .unavailable
    default: .unknown
    }
  }

  /// The code for a stream that the peer reset (gRPC over HTTP2, "HTTP2 Transport
  /// Mapping", Errors; the numbers are RFC 9113 section 7).
  static func mapping(resetCode: UInt32) -> StatusCode {
    switch resetCode {
    case 0x7: .unavailable  // REFUSED_STREAM
    case 0x8: .cancelled  // CANCEL
    case 0xb: .resourceExhausted  // ENHANCE_YOUR_CALM
    case 0xc: .permissionDenied  // INADEQUATE_SECURITY
    default: .internalError
    }
  }
}
