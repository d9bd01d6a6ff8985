import COpenSSL

/// What a listener needs for TLS 1.2 and 1.3: a certificate, its key, and whether it asks
/// clients for theirs. HTTP/2 is agreed on by ALPN; a client without it is turned away.
///
/// One value may serve several listeners.
public final class ServerTLS: Sendable {
  /// Whether clients show certificates.
  public enum ClientCertificates: Sendable, Hashable {
    case none
    /// Those who show one must have it from one of these issuers.
    case optional(roots: PEM)
    /// Nobody comes in without one from one of these issuers.
    case required(roots: PEM)
  }

  private let certificate: PEM
  private let key: PEM
  private let clientCertificates: ClientCertificates
  /// Taken once per connection, when it is accepted.
  private let context: Locked<TLSContext>

  /// `certificate` is the server's, followed by its issuers' up to a root.
  ///
  /// Throws `.tlsFailed` when something cannot be read or does not fit together.
  public init(
    certificate: PEM, key: PEM, clientCertificates: ClientCertificates = .none
  ) throws(HTTP2Error) {
    self.certificate = certificate
    self.key = key
    self.clientCertificates = clientCertificates
    context = Locked(try Self.load(certificate, key, clientCertificates))
  }

  /// Reads the files anew, for connections from now on; those that stand stay as they are.
  /// From any thread; it blocks for the files. When it throws, everything is as before.
  public func reload() throws(HTTP2Error) {
    let new = try Self.load(certificate, key, clientCertificates)
    context.withLock { $0 = new }
  }

  func session() -> TLSSession? {
    TLSSession(context.withLock { $0 }, isServer: true, serverName: nil)
  }

  private static func load(
    _ certificate: PEM, _ key: PEM, _ clientCertificates: ClientCertificates
  ) throws(HTTP2Error) -> TLSContext {
    let context = try TLSContext(isServer: true)
    try context.use(certificate: certificate, key: key)
    switch clientCertificates {
    case .none: break
    case .optional(let roots):
      try context.trust(roots, announcing: true)
      SSL_CTX_set_verify(context.pointer, SSL_VERIFY_PEER, nil)
    case .required(let roots):
      try context.trust(roots, announcing: true)
      SSL_CTX_set_verify(
        context.pointer, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
    }
    return context
  }
}
