import VencejoProtobuf
import VencejoRPC
import VencejoStore

/// The domain of an ErrorInfo: which service speaks.
enum ErrorDomain: String, Sendable {
  case auth = "auth.vencejo"
  case chat = "chat.vencejo"
  case record = "record.vencejo"
}

/// Runs a handler's body and turns the store's errors into statuses.
func answering<R>(_ domain: ErrorDomain, _ body: () async throws -> R) async throws -> R {
  do {
    return try await body()
  } catch let error as StoreError {
    throw RPCError(error, domain)
  }
}

extension RPCError {
  /// A store's error as a status with exactly one ErrorInfo and each other detail at most once
  /// (AIP-193).
  init(_ error: StoreError, _ domain: ErrorDomain) {
    // Peers cap trailers at 8 KiB: what came from a request is cut.
    self.init(StatusCode(error.code), Self.cut(error.message))
    add(
      detail: GoogleRPC.ErrorInfo(
        reason: error.reason, domain: domain.rawValue,
        metadata: error.metadata.mapValues { Self.cut($0) }))
    var fields: [GoogleRPC.BadRequest.FieldViolation] = []
    var quotas: [GoogleRPC.QuotaFailure.Violation] = []
    var preconditions: [GoogleRPC.PreconditionFailure.Violation] = []
    var resource: GoogleRPC.ResourceInfo?
    var retry: GoogleRPC.RetryInfo?
    for detail in error.details {
      switch detail {
      case .field(let field, let description):
        var violation = GoogleRPC.BadRequest.FieldViolation()
        violation.field = field
        violation.description = Self.cut(description)
        fields.append(violation)
      case .quota(let subject, let description):
        quotas.append(.init(subject: subject, description: Self.cut(description)))
      // A detail's name and no trap.
      case .precondition(let type, let subject, let description):
        preconditions.append(
          .init(type: type, subject: Self.cut(subject), description: Self.cut(description)))
      case .resource(let type, let name):
        var info = GoogleRPC.ResourceInfo()
        info.resourceType = type
        info.resourceName = Self.cut(name)
        resource = info
      case .retry(let milliseconds):
        retry = GoogleRPC.RetryInfo(
          retryDelay: Google.Duration(Duration.milliseconds(milliseconds)))
      }
    }
    if !fields.isEmpty {
      add(detail: GoogleRPC.BadRequest(fieldViolations: Array(fields.prefix(16))))
    }
    if !quotas.isEmpty { add(detail: GoogleRPC.QuotaFailure(violations: Array(quotas.prefix(4)))) }
    if !preconditions.isEmpty {
      add(detail: GoogleRPC.PreconditionFailure(violations: Array(preconditions.prefix(4))))
    }
    if let resource { add(detail: resource) }
    if let retry { add(detail: retry) }
  }

  private static func cut(_ text: String) -> String {
    text.utf8.count <= 512 ? text : String(text.prefix(128))
  }
}

extension StatusCode {
  init(_ code: StoreError.Code) {
    self =
      switch code {
      case .invalidArgument: .invalidArgument
      case .notFound: .notFound
      case .alreadyExists: .alreadyExists
      case .permissionDenied: .permissionDenied
      case .failedPrecondition: .failedPrecondition
      case .aborted: .aborted
      case .outOfRange: .outOfRange
      case .unauthenticated: .unauthenticated
      case .resourceExhausted: .resourceExhausted
      case .unavailable: .unavailable
      case .dataLoss: .dataLoss
      case .internalError: .internalError
      }
  }
}
