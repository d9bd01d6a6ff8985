import Synchronization
import VencejoRPC
import VencejoStore

/// The one place where a call's bearer token becomes a person.
final class Authenticator: Sendable {
  private struct Cache {
    var known: [String: (principal: Principal, until: Int64)] = [:]
    /// Grows with each revocation: an answer that was read before one must not be kept after
    /// it.
    var generation: UInt64 = 0
  }

  private static let capacity = 8192
  /// Microseconds after which a token is looked up again: a role granted from outside the
  /// server is seen then.
  private static let freshness: Int64 = 30_000_000
  private static let missing = StoreError(
    .unauthenticated, "MISSING_CREDENTIAL",
    "this method needs the metadata 'authorization: Bearer <access token>'")

  private let store: Store
  private let limits: RateLimits
  private let cache = Mutex(Cache())
  private let keysUsed = Mutex<Set<Int64>>([])

  init(_ store: Store, _ limits: RateLimits) {
    self.store = store
    self.limits = limits
  }

  /// Who makes this call.
  ///
  /// - Throws: `MISSING_CREDENTIAL`, `BAD_CREDENTIAL`, `ACCESS_TOKEN_EXPIRED`,
  ///   `SESSION_REVOKED`, `SESSION_EXPIRED`, all UNAUTHENTICATED; `SCOPE_MISSING` for an API key;
  ///   `RATE_LIMITED`.
  func principal(_ context: ServerContext) async throws(StoreError) -> Principal {
    let principal = try await bearer(context)
    let isRead = MethodScope.reads(context.method)
    if let scopes = principal.scopes {
      let scope = MethodScope.scope(context.method, isRead: isRead)
      guard let scope, scopes.contains(scope) || isRead && scopes.contains(scope.asWrite) else {
        throw StoreError(
          .permissionDenied, "SCOPE_MISSING",
          "this API key is not good for \(scope ?? "this method")",
          metadata: ["required_scope": scope ?? ""])
      }
      keysUsed.withLock { _ = $0.insert(principal.session) }
    }
    let who = String(principal.user)
    try limits.spend(.call, who, now: store.now)
    if !isRead {
      try limits.spend(.change, who, now: store.now)
      try limits.spend(.deviceChange, String(principal.session), now: store.now)
    }
    return principal
  }

  /// The keys used since this was asked last.
  func takeKeysUsed() -> [Int64] {
    keysUsed.withLock { keys in
      defer { keys.removeAll() }
      return Array(keys)
    }
  }

  private func bearer(_ context: ServerContext) async throws(StoreError) -> Principal {
    guard let token = Self.bearerToken(context.metadata) else { throw Self.missing }
    let (known, generation) = cache.withLock { ($0.known[token], $0.generation) }
    if let known, known.until > store.now { return known.principal }
    let principal = try await store.authenticate(token)
    cache.withLock { cache in
      guard cache.generation == generation else { return }
      // Full of tokens that may have expired: forget all rather than keep an order of use.
      if cache.known.count >= Self.capacity { cache.known.removeAll() }
      cache.known[token] = (
        principal, min(principal.accessExpireTime, store.now + Self.freshness)
      )
    }
    return principal
  }

  /// Takes revoked sessions out of the cache; on the writer's thread, before anybody is told.
  func forget(sessions: [Int64]) {
    let gone = Set(sessions)
    cache.withLock { cache in
      cache.generation &+= 1
      cache.known = cache.known.filter { !gone.contains($0.value.principal.session) }
    }
  }

  /// RFC 6750, section 2.1; the scheme's name has no case.
  static func bearerToken(_ metadata: Metadata) -> String? {
    guard let value = metadata["authorization"] else { return nil }
    let parts = value.split(separator: " ", omittingEmptySubsequences: true)
    guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
    return String(parts[1])
  }
}
