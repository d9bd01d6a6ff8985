public import VencejoHTTP2

/// The options of TLS that all clients of the program have in common.
public enum TLSOptions {
  /// To be added to a command's own.
  public static let client: [ArgumentList.Option] = [
    .init("tls"), .init("tls-ca", aliases: ["cacert"], value: true),
    .init("tls-cert", short: "E", aliases: ["cert"], value: true),
    .init("tls-key", aliases: ["key"], value: true),
    .init("tls-server-name", aliases: ["servername"], value: true),
    .init("insecure", short: "k"), .init("plaintext"),
  ]

  /// Their lines of `--help`.
  public static let help = """
      --tls                cipher the connection; the server's certificate must be from an
                           issuer the system trusts. Each of the following implies it
      --tls-ca FILE        trust these issuers instead (PEM)
      --tls-cert FILE      show this certificate, followed by its issuers' (PEM)
      --tls-key FILE       its private key (PEM)
      --tls-server-name N  the name the server's certificate must be for
      -k, --insecure       believe any certificate: for trials only
      --plaintext          no TLS, which is the default
    """

  /// What they ask for; nil is plain text. Throws a `Fault` when they do not fit together or
  /// a file cannot be used.
  public static func client(_ arguments: ArgumentList) throws(ArgumentList.Fault) -> ClientTLS? {
    let wanted = client.map(\.long).filter { $0 != "plaintext" && arguments.has($0) }
    guard !wanted.isEmpty else { return nil }
    if arguments.has("plaintext") {
      throw ArgumentList.Fault("--plaintext and --\(wanted[0]) exclude each other")
    }
    if arguments.has("insecure"), arguments.has("tls-ca") {
      throw ArgumentList.Fault("--insecure and --tls-ca exclude each other")
    }
    let roots = arguments["tls-ca"].map { PEM.file($0) }
    var tls: ClientTLS
    if arguments.has("insecure") {
      let pair = try pair(arguments)
      tls = .insecure(certificate: pair?.certificate, key: pair?.key)
    } else if let (certificate, key) = try pair(arguments) {
      tls = .mutual(certificate: certificate, key: key, roots: roots)
    } else {
      tls = roots.map { .roots($0) } ?? .systemRoots
    }
    tls.serverName = arguments["tls-server-name"]
    do throws(HTTP2Error) { try tls.check() } catch { throw ArgumentList.Fault(error.message) }
    return tls
  }

  /// Of a server, to be added to its own.
  public static let server: [ArgumentList.Option] = [
    .init("tls-cert", aliases: ["cert"], value: true),
    .init("tls-key", aliases: ["key"], value: true),
    .init("tls-client-ca", aliases: ["cacert"], value: true),
  ]

  /// What they ask for; nil is plain text. Throws as `client` does.
  public static func server(_ arguments: ArgumentList) throws(ArgumentList.Fault) -> ServerTLS? {
    guard let (certificate, key) = try pair(arguments) else {
      guard !arguments.has("tls-client-ca") else {
        throw ArgumentList.Fault("--tls-client-ca needs --tls-cert and --tls-key")
      }
      return nil
    }
    let clients = arguments["tls-client-ca"].map {
      ServerTLS.ClientCertificates.required(roots: .file($0))
    }
    do throws(HTTP2Error) {
      return try ServerTLS(
        certificate: certificate, key: key, clientCertificates: clients ?? .none)
    } catch {
      throw ArgumentList.Fault(error.message)
    }
  }

  private static func pair(
    _ arguments: ArgumentList
  ) throws(ArgumentList.Fault) -> (certificate: PEM, key: PEM)? {
    switch (arguments["tls-cert"], arguments["tls-key"]) {
    case (nil, nil): return nil
    case (let certificate?, let key?): return (.file(certificate), .file(key))
    default: throw ArgumentList.Fault("--tls-cert and --tls-key go together")
    }
  }
}
