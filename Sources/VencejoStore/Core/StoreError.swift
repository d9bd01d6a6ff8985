/// Why an operation of the store was refused or failed.
///
/// The one error type of this room. Codes carry the names of gRPC's, so that a server maps
/// them without a table of cases; reasons are the `UPPER_SNAKE` words clients act on.
public struct StoreError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The class of the failure, by gRPC's names.
  public enum Code: Sendable, Hashable {
    case invalidArgument, notFound, alreadyExists, permissionDenied, failedPrecondition
    case aborted, outOfRange, unauthenticated, resourceExhausted, unavailable, dataLoss
    case internalError
  }

  /// What accompanies an error, by the names of google.rpc's standard details.
  public enum Detail: Sendable, Hashable {
    /// ResourceInfo.
    case resource(type: String, name: String)
    /// QuotaFailure.
    case quota(subject: String, description: String)
    /// RetryInfo.
    case retry(afterMilliseconds: Int64)
    /// BadRequest.
    case field(String, description: String)
    /// PreconditionFailure.
    case precondition(type: String, subject: String, description: String)
  }

  public var code: Code
  /// `UPPER_SNAKE`, at most 63 letters (AIP-193).
  public var reason: String
  /// For developers; every variable part of it is in ``metadata`` too.
  public var message: String
  public var metadata: [String: String]
  public var details: [Detail]

  public init(
    _ code: Code, _ reason: String, _ message: String, metadata: [String: String] = [:],
    details: [Detail] = []
  ) {
    self.code = code
    self.reason = reason
    self.message = message
    self.metadata = metadata
    self.details = details
  }

  public var description: String { "\(reason): \(message)" }

  /// An argument that cannot be right, whatever the state of the store.
  public static func invalid(_ field: String, _ reason: String, _ message: String) -> StoreError {
    StoreError(
      .invalidArgument, reason, message, metadata: ["field": field],
      details: [.field(field, description: message)])
  }

  /// Something that does not exist, or not for this caller.
  public static func notFound(_ reason: String, type: String, name: String) -> StoreError {
    StoreError(
      .notFound, reason, "\(name) does not exist, or you cannot see it",
      metadata: ["resource": name], details: [.resource(type: type, name: name)])
  }
}
