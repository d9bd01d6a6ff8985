import COpenSSL

/// OpenSSL's errors in words that say what is wrong.
enum TLSFailure {
  /// A certificate, key or context that is no good. Empties the error queue.
  static func setup(_ what: String) -> HTTP2Error {
    let error = ERR_peek_last_error()
    ERR_clear_error()
    return HTTP2Error(.tlsFailed, "\(what): \(text(of: error) ?? "not usable")")
  }

  /// A connection's failure. Empties the error queue.
  static func connection(_ ssl: OpaquePointer, isServer: Bool, name: String?) -> HTTP2Error {
    let error = ERR_peek_error()
    ERR_clear_error()
    let peer = isServer ? "client" : "server"
    let verified = SSL_get_verify_result(ssl)
    if tls_reason(error) == SSL_R_CERTIFICATE_VERIFY_FAILED, verified != Int(X509_V_OK) {
      return failed(certificate(verified, peer, name))
    }
    switch tls_reason(error) {
    case SSL_R_WRONG_VERSION_NUMBER, SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST,
      SSL_R_PACKET_LENGTH_TOO_LONG, SSL_R_RECORD_LENGTH_MISMATCH:
      return failed("the \(peer) does not speak TLS")
    case SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL, SSL_R_NO_APPLICATION_PROTOCOL:
      return failed(withoutALPN(peer))
    case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, SSL_R_VERSION_TOO_LOW:
      return failed("the \(peer) has no version of TLS in common with us (1.2 and 1.3)")
    case SSL_R_NO_SHARED_CIPHER, SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
      return failed("the \(peer) has no ciphers in common with us, or wants a certificate")
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return failed("the server wants a client certificate")
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return failed("the client showed no certificate")
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return failed("the \(peer) does not know the issuer of our certificate")
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return failed("the \(peer) says that our certificate has expired")
    default:
      return failed(text(of: error) ?? "the \(peer) broke the connection off")
    }
  }

  static func withoutALPN(_ peer: String) -> String {
    "the \(peer) does not offer HTTP/2 over TLS (ALPN 'h2')"
  }

  static func failed(_ text: String) -> HTTP2Error { HTTP2Error(.tlsFailed, "TLS: " + text) }

  private static func certificate(_ result: Int, _ peer: String, _ name: String?) -> String {
    let certificate = "the \(peer)'s certificate"
    switch Int32(truncatingIfNeeded: result) {
    case X509_V_ERR_CERT_HAS_EXPIRED: return "\(certificate) has expired"
    case X509_V_ERR_CERT_NOT_YET_VALID: return "\(certificate) is not valid yet"
    case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "\(certificate) is not for '\(name ?? "")'"
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT,
      X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
      X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return "\(certificate) is from an unknown issuer"
    default:
      return "\(certificate) is refused: \(String(cString: X509_verify_cert_error_string(result)))"
    }
  }

  private static func text(of error: UInt) -> String? {
    ERR_reason_error_string(error).map { String(cString: $0) }
  }
}
