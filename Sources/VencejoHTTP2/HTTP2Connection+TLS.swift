/// Between the socket's bytes and the session's.
extension HTTP2Connection {
  /// What TLS may want to say to a peer that does not listen.
  private static let maxHeldBytes = 256 << 10

  /// Who the client is, as its certificate says (server; nil without one). Readable from
  /// the handlers of the connection's streams, on any thread.
  public var peerIdentity: PeerIdentity? { tls?.peerIdentity }

  /// Whether it is ciphered.
  public var isEncrypted: Bool { tls != nil }

  /// A client speaks first. `completion` hears once how the handshake ended.
  func beginTLS(_ tls: TLSSession, _ completion: @escaping (HTTP2Error?) -> Void) {
    tls.completion = completion
    advance(tls)
  }

  /// Takes bytes from the wire.
  func receive(_ bytes: UnsafeRawBufferPointer, _ tls: TLSSession) {
    guard !isClosed else { return }
    tls.feed(bytes)
    defer { tls.feed(UnsafeRawBufferPointer(start: nil, count: 0)) }
    if !tls.isEstablished && !advance(tls) { return }
    let buffers = loop.sharedTLSBuffers()
    while !isClosed {
      let (count, end) = tls.read(into: buffers.plain)
      if count > 0 { receive(UnsafeRawBufferPointer(start: buffers.plain, count: count)) }
      guard !isClosed else { return }
      switch end {
      case .full: continue
      case .drained:
        answerTLS(tls)
        return
      case .closed:
        receiveEnd()
        return
      case .failed(let error):
        tearDown(error)
        return
      }
    }
  }

  /// A step of the handshake; true when it is over and well.
  @discardableResult
  private func advance(_ tls: TLSSession) -> Bool {
    switch tls.handshake() {
    case .waiting:
      markDirty()
      return false
    case .failed(let error):
      tearDown(error)
      return false
    case .established:
      markDirty()
      let completion = tls.completion
      tls.completion = nil
      completion?(nil)
      return !isClosed
    }
  }

  /// After the handshake TLS speaks of itself when the peer makes it: to attempts to
  /// negotiate anew, and to requests for new keys. A few are well.
  private func answerTLS(_ tls: TLSSession) {
    guard !tls.held.isEmpty else { return }
    markDirty()
    if tls.held.count > Self.maxHeldBytes {
      tearDown(HTTP2Error(.excessiveLoad, "the peer makes TLS speak and does not listen"))
    } else if isOpen {
      countIdleFrame("TLS messages")
    }
  }

  /// Before the handshake is over nothing else is said.
  func flushHandshake() {
    isDirty = false
    if isTerminating {
      tearDown(closeReason)
      return
    }
    outCount = 0
    _ = writeOut()
  }

  /// `out` as it goes on the wire.
  func seal(_ tls: TLSSession) -> (bytes: UnsafeMutablePointer<UInt8>, count: Int)? {
    let buffers = loop.sharedTLSBuffers()
    guard tls.seal(out, outCount, into: buffers) else { return nil }
    return (buffers.wire, buffers.count)
  }

  /// Says goodbye, if the kernel takes it: nobody waits for it.
  func endTLS() {
    guard let tls else { return }
    tls.end()
    // After a piece of a record nothing else may follow.
    guard backlog == nil, !tls.held.isEmpty else { return }
    var bytes = tls.held
    _ = bytes.withUnsafeMutableBufferPointer { buffer in
      buffer.baseAddress.map { socket?.write($0, buffer.count) ?? -1 }
    }
  }

  /// For a client that still waits for the handshake.
  func tellTLSEnded(_ reason: HTTP2Error?) {
    guard let completion = tls?.completion else { return }
    tls?.completion = nil
    completion(
      reason ?? HTTP2Error(.connectionClosed, "the server closed the connection during TLS"))
  }
}
