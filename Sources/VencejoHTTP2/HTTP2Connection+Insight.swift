import CNGHTTP2
import COpenSSL

/// What of a connection is shown to people who look for a fault. On the loop only.
extension HTTP2Connection {
  /// Bytes the peer still lets us send on the connection.
  public var sendWindow: Int {
    guard let session else { return 0 }
    return Int(nghttp2_session_get_remote_window_size(session))
  }

  /// Bytes we still let the peer send.
  public var receiveWindow: Int {
    guard let session else { return 0 }
    return Int(nghttp2_session_get_local_window_size(session))
  }

  /// The cipher suite as IANA names it; nil in plain text and before the handshake is over.
  public var cipherSuite: String? { tls?.cipherSuite }
  /// In DER; nil in plain text and where none was shown.
  public var localCertificate: [UInt8]? { tls?.certificate(ofPeer: false) }
  public var remoteCertificate: [UInt8]? { tls?.certificate(ofPeer: true) }
}
