import COpenSSL

/// One connection's TLS: bytes in, bytes out, no I/O. It belongs to the connection's loop.
///
/// OpenSSL reads and writes through a BIO that has no buffer: what comes is lent to it
/// for a call, what goes lands in the loop's buffer, so that a connection at rest holds
/// no bytes.
final class TLSSession {
  enum Progress {
    case waiting
    case established
    case failed(HTTP2Error)
  }

  enum ReadEnd {
    /// All that came is read.
    case drained
    /// There may be more.
    case full
    /// The peer said goodbye (close_notify).
    case closed
    case failed(HTTP2Error)
  }

  private let isServer: Bool
  private let serverName: String?
  private var ssl: OpaquePointer?
  private var hasFailed = false
  @exclusivity(unchecked) private var incoming = UnsafeRawBufferPointer(start: nil, count: 0)
  @exclusivity(unchecked) private var outgoing: TLSBuffers?
  /// What TLS itself wants to say, until the connection's next write: handshakes, tickets,
  /// alerts.
  @exclusivity(unchecked) private(set) var held: [UInt8] = []
  /// The handshake is over, and well.
  @exclusivity(unchecked) private(set) var isEstablished = false
  /// Set with `isEstablished` and never changed, so that any thread which learned of the
  /// connection from a call may read it.
  @exclusivity(unchecked) private(set) var peerIdentity: PeerIdentity?
  /// Told once how the handshake ended.
  var completion: ((HTTP2Error?) -> Void)?

  /// nil when there is no memory.
  init?(_ context: TLSContext, isServer: Bool, serverName: String?) {
    self.isServer = isServer
    self.serverName = serverName
    ERR_clear_error()
    guard let ssl = SSL_new(context.pointer) else { return nil }
    self.ssl = ssl
    guard let bio = BIO_new(TLSChannel.method) else { return nil }
    BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
    BIO_set_init(bio, 1)
    SSL_set_bio(ssl, bio, bio)
    if isServer {
      SSL_set_accept_state(ssl)
    } else {
      SSL_set_connect_state(ssl)
      guard expect(serverName ?? "", ssl) else { return nil }
    }
  }

  deinit { SSL_free(ssl) }

  /// Names and addresses are not the same (RFC 9525, section 6): SNI is for names only.
  private func expect(_ name: String, _ ssl: OpaquePointer) -> Bool {
    let parameters = SSL_get0_param(ssl)
    if X509_VERIFY_PARAM_set1_ip_asc(parameters, name) == 1 { return true }
    ERR_clear_error()
    X509_VERIFY_PARAM_set_hostflags(parameters, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
    // An empty name would switch the check off.
    return !name.isEmpty && X509_VERIFY_PARAM_set1_host(parameters, name, 0) == 1
      && tls_set_server_name(ssl, name) == 1
  }

  // MARK: The connection's calls

  /// Lends what came; `handshake` and `read` take all of it.
  func feed(_ bytes: UnsafeRawBufferPointer) { incoming = bytes }

  func handshake() -> Progress {
    guard let ssl else { return .failed(TLSFailure.failed("closed")) }
    ERR_clear_error()
    let result = SSL_do_handshake(ssl)
    guard result == 1 else {
      return SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ ? .waiting : fail(ssl)
    }
    var protocolName: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    SSL_get0_alpn_selected(ssl, &protocolName, &length)
    guard length == 2, protocolName?[0] == UInt8(ascii: "h"), protocolName?[1] == UInt8(ascii: "2")
    else {
      return .failed(TLSFailure.failed(TLSFailure.withoutALPN(isServer ? "client" : "server")))
    }
    if isServer { peerIdentity = PeerIdentity(ssl) }
    isEstablished = true
    return .established
  }

  private func fail(_ ssl: OpaquePointer) -> Progress {
    hasFailed = true
    return .failed(TLSFailure.connection(ssl, isServer: isServer, name: serverName))
  }

  /// Deciphers into `buffer`, at most `EventLoop.readSize` bytes.
  func read(into buffer: UnsafeMutablePointer<UInt8>) -> (count: Int, end: ReadEnd) {
    guard let ssl else { return (0, .closed) }
    var filled = 0
    while filled < EventLoop.readSize {
      var count = 0
      ERR_clear_error()
      if SSL_read_ex(ssl, buffer + filled, EventLoop.readSize - filled, &count) == 1 {
        filled += count
        continue
      }
      switch SSL_get_error(ssl, 0) {
      case SSL_ERROR_WANT_READ: return (filled, .drained)
      case SSL_ERROR_ZERO_RETURN: return (filled, .closed)
      default:
        hasFailed = true
        let error = TLSFailure.connection(ssl, isServer: isServer, name: serverName)
        return (filled, .failed(error))
      }
    }
    return (filled, .full)
  }

  /// Puts what is held and `count` bytes, ciphered, into the loop's buffer; false when TLS
  /// has failed.
  func seal(_ bytes: UnsafePointer<UInt8>, _ count: Int, into buffers: TLSBuffers) -> Bool {
    buffers.count = 0
    if !held.isEmpty {
      held.withUnsafeBufferPointer { bytes in
        if let base = bytes.baseAddress { buffers.append(base, bytes.count) }
      }
      held = []
    }
    guard count > 0 else { return true }
    guard let ssl, isEstablished else { return false }
    outgoing = buffers
    defer { outgoing = nil }
    ERR_clear_error()
    var written = 0
    guard SSL_write_ex(ssl, bytes, count, &written) == 1 else {
      hasFailed = true
      ERR_clear_error()
      return false
    }
    return true
  }

  /// The end; what remains to be sent, a close_notify last, is in `held`.
  func end() {
    guard let ssl else { return }
    if isEstablished && !hasFailed {
      ERR_clear_error()
      SSL_shutdown(ssl)
    }
    ERR_clear_error()
    SSL_free(ssl)
    self.ssl = nil
  }

  // MARK: For people who look

  var cipherSuite: String? {
    guard let ssl, isEstablished, let cipher = SSL_get_current_cipher(ssl),
      let name = SSL_CIPHER_standard_name(cipher)
    else { return nil }
    return String(cString: name)
  }

  func certificate(ofPeer: Bool) -> [UInt8]? {
    guard let ssl, isEstablished,
      let leaf = ofPeer ? SSL_get0_peer_certificate(ssl) : SSL_get_certificate(ssl)
    else { return nil }
    return PeerIdentity.der(leaf)
  }

  // MARK: OpenSSL's calls

  fileprivate func give(_ bio: OpaquePointer?, _ buffer: UnsafeMutableRawPointer, _ count: Int)
    -> Int
  {
    guard let base = incoming.baseAddress, !incoming.isEmpty else {
      tls_bio_must_retry_read(bio)
      return -1
    }
    let taken = min(count, incoming.count)
    buffer.copyMemory(from: base, byteCount: taken)
    incoming = UnsafeRawBufferPointer(rebasing: incoming[taken...])
    return taken
  }

  fileprivate func take(_ bytes: UnsafePointer<UInt8>, _ count: Int) {
    if let outgoing {
      outgoing.append(bytes, count)
    } else {
      held.append(contentsOf: UnsafeBufferPointer(start: bytes, count: count))
    }
  }
}

/// The BIO between OpenSSL and a session.
private enum TLSChannel {
  /// Nothing changes it once it is made.
  nonisolated(unsafe) static let method: OpaquePointer? = {
    let type = BIO_get_new_index() | BIO_TYPE_SOURCE_SINK
    let method = BIO_meth_new(type, "vencejo")
    BIO_meth_set_read(method) { bio, buffer, count in
      tls_bio_clear_retry(bio)
      guard let buffer, count > 0, let pointer = BIO_get_data(bio) else { return -1 }
      return Unmanaged<TLSSession>.fromOpaque(pointer)._withUnsafeGuaranteedRef {
        Int32(truncatingIfNeeded: $0.give(bio, buffer, Int(count)))
      }
    }
    BIO_meth_set_write(method) { bio, bytes, count in
      tls_bio_clear_retry(bio)
      guard let bytes, count > 0, let pointer = BIO_get_data(bio) else { return -1 }
      Unmanaged<TLSSession>.fromOpaque(pointer)._withUnsafeGuaranteedRef { session in
        bytes.withMemoryRebound(to: UInt8.self, capacity: Int(count)) {
          session.take($0, Int(count))
        }
      }
      return count
    }
    BIO_meth_set_ctrl(method) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
    return method
  }()
}
