import COpenSSL

/// How a client makes sure of its server, and shows who it is: TLS 1.2 or 1.3 with HTTP/2
/// agreed on by ALPN. The server's certificate must be valid, from a trusted issuer, and
/// for the name (RFC 9525) that was asked for.
public struct ClientTLS: Sendable {
  /// The name the server's certificate must be for, instead of the target's host; it goes
  /// into SNI and `:authority` too. For tests and tunnels.
  public var serverName: String?
  private let context: Result<TLSContext, HTTP2Error>

  private init(_ load: (TLSContext) throws(HTTP2Error) -> Void) {
    do throws(HTTP2Error) {
      let context = try TLSContext(isServer: false)
      SSL_CTX_set_verify(context.pointer, SSL_VERIFY_PEER, nil)
      try load(context)
      self.context = .success(context)
    } catch {
      self.context = .failure(error)
    }
  }

  /// Trusts the issuers the system trusts. Files are read at once, here and below; that they
  /// cannot be is told by whoever uses the value.
  public static var systemRoots: ClientTLS {
    ClientTLS { context throws(HTTP2Error) in try context.trustSystemRoots() }
  }

  /// Trusts these issuers, and no others.
  public static func roots(_ roots: PEM) -> ClientTLS {
    ClientTLS { context throws(HTTP2Error) in try context.trust(roots) }
  }

  /// Shows a certificate, which is followed by its issuers', to servers that ask for one.
  /// Trusts `roots`, or the issuers the system trusts without any.
  public static func mutual(certificate: PEM, key: PEM, roots: PEM? = nil) -> ClientTLS {
    ClientTLS { context throws(HTTP2Error) in
      if let roots { try context.trust(roots) } else { try context.trustSystemRoots() }
      try context.use(certificate: certificate, key: key)
    }
  }

  /// Believes whatever the server says of itself: for trials, where nobody is in between.
  /// Shows a certificate when one is given.
  public static func insecure(certificate: PEM? = nil, key: PEM? = nil) -> ClientTLS {
    ClientTLS { context throws(HTTP2Error) in
      if let certificate, let key { try context.use(certificate: certificate, key: key) }
      SSL_CTX_set_verify(context.pointer, SSL_VERIFY_NONE, nil)
    }
  }

  /// Throws `.tlsFailed` when something could not be read or does not fit together.
  public func check() throws(HTTP2Error) { _ = try context.get() }

  func session() throws(HTTP2Error) -> TLSSession {
    let context = try context.get()
    guard let session = TLSSession(context, isServer: false, serverName: serverName) else {
      throw TLSFailure.setup("TLS")
    }
    return session
  }
}
