public import VencejoHTTP2

/// The certificates that gRPC's interoperability tests name: an issuer, and a server of
/// `*.test.google.fr`. Debian's golang-google-grpc-dev brings them; flags replace them.
public enum TestCertificates {
  private static let folder = "/usr/share/gocode/src/google.golang.org/grpc/testdata"

  public static func issuer(_ flags: Flags) -> PEM {
    .file(flags["ca_file"] ?? "\(folder)/ca.pem")
  }

  public static func server(_ flags: Flags) -> (certificate: PEM, key: PEM) {
    (
      .file(flags["tls_cert_file"] ?? "\(folder)/server1.pem"),
      .file(flags["tls_key_file"] ?? "\(folder)/server1.key")
    )
  }
}
