import COpenSSL

/// Who is at the other end, as a certificate from a trusted issuer says.
public struct PeerIdentity: Sendable, Hashable {
  /// The certificate's subject as RFC 2253 writes it: `CN=ana,O=Vencejo`.
  public let subject: String
  /// The alternative names (RFC 5280, section 4.2.1.6), by their kinds.
  public internal(set) var dnsNames: [String] = []
  /// As `spiffe://example.org/chat`.
  public internal(set) var uris: [String] = []
  public internal(set) var emailAddresses: [String] = []
  /// Of four or sixteen bytes each.
  public internal(set) var ipAddresses: [[UInt8]] = []
  /// The certificate itself, in DER.
  public let certificate: [UInt8]

  /// nil when the peer showed none.
  init?(_ ssl: OpaquePointer) {
    guard let leaf = SSL_get0_peer_certificate(ssl) else { return nil }
    ERR_clear_error()
    subject = Self.subject(leaf)
    certificate = Self.der(leaf)
    // Written to inside the call only.
    withUnsafeMutablePointer(to: &self) { this in
      tls_visit_names(leaf, this) { this, kind, bytes, count in
        guard let this, let bytes, count >= 0 else { return }
        this.assumingMemoryBound(to: PeerIdentity.self).pointee
          .add(kind, UnsafeBufferPointer(start: bytes, count: Int(count)))
      }
    }
    ERR_clear_error()
  }

  static func der(_ certificate: OpaquePointer) -> [UInt8] {
    let size = i2d_X509(certificate, nil)
    return [UInt8](unsafeUninitializedCapacity: Int(max(size, 0))) { buffer, count in
      guard size > 0 else { return }
      var end = buffer.baseAddress
      count = Int(max(i2d_X509(certificate, &end), 0))
    }
  }

  private mutating func add(_ kind: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
    if kind == GEN_IPADD {
      ipAddresses.append(Array(bytes))
      return
    }
    // `good.example\0.evil.example` has fooled many: no name has such a byte.
    guard !bytes.contains(0) else { return }
    let text = String(decoding: bytes, as: UTF8.self)
    switch kind {
    case GEN_DNS: dnsNames.append(text)
    case GEN_URI: uris.append(text)
    default: emailAddresses.append(text)
    }
  }

  private static func subject(_ leaf: OpaquePointer) -> String {
    guard let bio = BIO_new(BIO_s_mem()) else { return "" }
    defer { BIO_free(bio) }
    guard tls_print_subject(bio, leaf) == 1 else { return "" }
    var text = [UInt8](repeating: 0, count: 4_096)
    let count = BIO_read(bio, &text, Int32(text.count))
    return String(decoding: text.prefix(Int(max(count, 0))), as: UTF8.self)
  }
}
