public import VencejoRPC

/// Who makes a call, as an interceptor found out.
public struct CallerIdentity: Sendable, Hashable {
  /// The name of the person or program.
  public var subject: String
  /// What else is known: roles, scopes, a tenant.
  public var attributes: [String: String]

  /// Of the call that the handler answers; nil where nobody asked.
  @TaskLocal public static var current: CallerIdentity?

  public init(subject: String, attributes: [String: String] = [:]) {
    self.subject = subject
    self.attributes = attributes
  }
}

/// Lets in only calls that bring a token somebody vouches for (RFC 6750, "Bearer Token Usage").
///
/// ```swift
/// configuration.interceptors = [
///   BearerAuthentication(exempt: ["grpc.health.v1.Health"]) { token, _ in
///     await sessions.user(of: token).map { CallerIdentity(subject: $0.name) }
///   }
/// ]
/// ```
///
/// Calls without a token, or with one that `verify` answers nil to, end with UNAUTHENTICATED;
/// handlers find the identity in `CallerIdentity.current`.
public struct BearerAuthentication: ServerInterceptor {
  private let exempt: Set<String>
  private let verify: @Sendable (String, ServerContext) async throws -> CallerIdentity?

  /// `exempt` names services, or methods as `package.Service/Method`, that anybody may call.
  /// `verify` may throw an `RPCError` to answer with another status: UNAVAILABLE while it cannot
  /// tell.
  public init(
    exempt: Set<String> = [],
    verify: @escaping @Sendable (String, ServerContext) async throws -> CallerIdentity?
  ) {
    self.exempt = exempt
    self.verify = verify
  }

  public func intercept(_ call: ServerInterception) async throws {
    let name = call.context.method.drop { $0 == "/" }
    let service = name.prefix { $0 != "/" }
    if exempt.contains(String(name)) || exempt.contains(String(service)) {
      return try await call.proceed()
    }
    guard let token = Self.token(call.metadata[all: "authorization"]) else {
      throw RPCError(.unauthenticated, "the call brings no bearer token")
    }
    guard let identity = try await verify(token, call.context) else {
      throw RPCError(.unauthenticated, "the token is not valid")
    }
    try await CallerIdentity.$current.withValue(identity) { try await call.proceed() }
  }

  /// The scheme's name is compared without regard to case (RFC 9110, section 11.1). Two
  /// credentials are none: which of them counts is not for us to guess.
  private static func token(_ values: [String]) -> String? {
    guard values.count == 1, let space = values[0].firstIndex(of: " "),
      values[0][..<space].lowercased() == "bearer"
    else { return nil }
    let token = values[0][space...].drop { $0 == " " }
    return token.isEmpty || token.contains(" ") ? nil : String(token)
  }
}
