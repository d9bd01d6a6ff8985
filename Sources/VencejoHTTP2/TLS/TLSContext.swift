import COpenSSL

/// OpenSSL's SSL_CTX: what all connections of a listener or a channel have in common.
///
/// `@unchecked Sendable`: nothing changes it once it is made, and OpenSSL counts the
/// references of its connections atomically.
final class TLSContext: @unchecked Sendable {
  let pointer: OpaquePointer

  init(isServer: Bool) throws(HTTP2Error) {
    ERR_clear_error()
    guard let made = SSL_CTX_new(isServer ? TLS_server_method() : TLS_client_method()) else {
      throw TLSFailure.setup("TLS")
    }
    pointer = made
    guard tls_configure(made, isServer ? 1 : 0) == 1 else { throw TLSFailure.setup("TLS") }
  }

  deinit { SSL_CTX_free(pointer) }

  /// Shows a certificate with its issuers, the own one first, and proves it with its key.
  func use(certificate: PEM, key: PEM) throws(HTTP2Error) {
    let what = "the certificate" + certificate.place
    let chain = try Self.certificates(certificate, "the certificate")
    for (index, one) in chain.enumerated() {
      ERR_clear_error()
      if index == 0 {
        guard SSL_CTX_use_certificate(pointer, one.pointer) == 1 else {
          throw TLSFailure.setup(what)
        }
      } else {
        X509_up_ref(one.pointer)
        guard tls_add_chain_certificate(pointer, one.pointer) == 1 else {
          X509_free(one.pointer)
          throw TLSFailure.setup(what)
        }
      }
    }
    let bytes = try key.load("the key")
    ERR_clear_error()
    let read = Self.withBIO(bytes) { PEM_read_bio_PrivateKey($0, nil, tls_no_password, nil) }
    guard let read else { throw TLSFailure.setup("the key" + key.place) }
    defer { EVP_PKEY_free(read) }
    guard SSL_CTX_use_PrivateKey(pointer, read) == 1, SSL_CTX_check_private_key(pointer) == 1
    else { throw TLSFailure.setup("the key" + key.place) }
  }

  /// Trusts these issuers; a server tells clients their names when `announcing`.
  func trust(_ roots: PEM, announcing: Bool = false) throws(HTTP2Error) {
    for root in try Self.certificates(roots, "the roots") {
      ERR_clear_error()
      guard X509_STORE_add_cert(SSL_CTX_get_cert_store(pointer), root.pointer) == 1,
        !announcing || SSL_CTX_add_client_CA(pointer, root.pointer) == 1
      else { throw TLSFailure.setup("the roots" + roots.place) }
    }
  }

  /// Trusts whom the system trusts; SSL_CERT_FILE and SSL_CERT_DIR name other places.
  func trustSystemRoots() throws(HTTP2Error) {
    ERR_clear_error()
    guard SSL_CTX_set_default_verify_paths(pointer) == 1 else {
      throw TLSFailure.setup("the system's roots")
    }
  }

  /// A certificate that frees itself.
  private final class Certificate {
    let pointer: OpaquePointer
    init(_ pointer: OpaquePointer) { self.pointer = pointer }
    deinit { X509_free(pointer) }
  }

  private static func certificates(
    _ pem: PEM, _ what: String
  ) throws(HTTP2Error) -> [Certificate] {
    let bytes = try pem.load(what)
    var found: [Certificate] = []
    ERR_clear_error()
    withBIO(bytes) { bio in
      while let one = PEM_read_bio_X509(bio, nil, tls_no_password, nil) {
        found.append(Certificate(one))
      }
    }
    let error = ERR_peek_last_error()
    guard !found.isEmpty, tls_is_end_of_pem(error) != 0 else {
      if found.isEmpty && tls_is_end_of_pem(error) != 0 {
        throw HTTP2Error(.tlsFailed, "\(what)\(pem.place): no certificate in PEM")
      }
      throw TLSFailure.setup(what + pem.place)
    }
    ERR_clear_error()
    return found
  }

  private static func withBIO<R>(_ bytes: [UInt8], _ body: (OpaquePointer?) -> R) -> R {
    bytes.withUnsafeBytes { raw in
      let bio = BIO_new_mem_buf(raw.baseAddress, Int32(clamping: raw.count))
      defer { BIO_free(bio) }
      return body(bio)
    }
  }
}
