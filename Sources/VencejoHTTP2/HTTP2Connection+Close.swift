import CNGHTTP2
import Synchronization

/// The ways a connection ends.
extension HTTP2Connection {
  /// Ends the connection without harm to what runs on it.
  ///
  /// A server says that it will go, waits a round trip for requests on their way,
  /// names the last stream it takes, and closes when the last has ended (RFC 9113,
  /// section 6.8). A client opens no more streams and closes when none is left.
  public func shutdownGracefully() {
    loop.assertCurrent()
    guard let session, !isClosed, !isTerminating, !isGoingAway else { return }
    if let tls, !tls.isEstablished {
      close()
      return
    }
    isGoingAway = true
    isShuttingDown = true
    if isServer {
      _ = nghttp2_submit_shutdown_notice(session)
      // A peer that never answers must not hold the door.
      shutdownTimer = loop.schedule(after: .seconds(1)) { [self] in
        sendFinalGoAway()
      }
    } else if let limit = limits.configuration.drainTimeout {
      cutOff(after: limit)
    }
    markDirty()
  }

  func sendFinalGoAway() {
    guard let session, !isClosed, !isTerminating, !hasSentFinalGoAway else { return }
    hasSentFinalGoAway = true
    shutdownTimer?.cancel()
    _ = nghttp2_submit_goaway(
      session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nghttp2_session_get_last_proc_stream_id(session),
      HTTP2Code.noError, nil, 0)
    if let limit = limits.configuration.drainTimeout { cutOff(after: limit) }
    markDirty()
  }

  private func cutOff(after limit: Duration) {
    shutdownTimer = loop.schedule(after: limit) { [self] in close(HTTP2Code.noError) }
  }

  /// Sends GOAWAY with `code` and closes at the end of the tick; streams that still run
  /// close with `HTTP2Code.connectionLost`.
  public func close(_ code: UInt32 = HTTP2Code.noError) {
    loop.assertCurrent()
    let reason = HTTP2Error(.connectionClosed, "the connection was closed here", code: code)
    terminate(code == HTTP2Code.noError && openStreamCount == 0 ? nil : reason, code: code)
  }

  /// Measures a round trip with a PING; fails when the connection closes first.
  public func ping(_ completion: @escaping (Result<Duration, HTTP2Error>) -> Void) {
    loop.assertCurrent()
    guard let session, !isClosed, !isTerminating else {
      completion(.failure(HTTP2Error(.connectionClosed, "the connection is closed")))
      return
    }
    pingCount &+= 1
    pings.append(
      PendingPing(number: pingCount, sent: Syscalls.monotonicNow(), completion: completion))
    _ = withUnsafeBytes(of: &pingCount) {
      nghttp2_submit_ping(
        session, UInt8(NGHTTP2_FLAG_NONE.rawValue),
        $0.baseAddress?.assumingMemoryBound(to: UInt8.self))
    }
    markDirty()
  }

  /// GOAWAY, then the end. Nothing more is read.
  func terminate(_ reason: HTTP2Error?, code: UInt32? = nil) {
    guard let session, !isClosed, !isTerminating else { return }
    isTerminating = true
    isShuttingDown = true
    closeReason = reason
    _ = nghttp2_session_terminate_session(session, code ?? reason?.code ?? HTTP2Code.noError)
    markDirty()
  }

  /// The end now. Inside a callback of nghttp2 it waits for the callback's return.
  func tearDown(_ reason: HTTP2Error?) {
    guard !isClosed else { return }
    // Whether we end it, and not the peer or the network.
    let isOurWish = isTerminating
    isTerminating = true
    isShuttingDown = true
    if depth > 0 {
      if pendingClose == nil { pendingClose = .some(reason) }
      return
    }
    isClosed = true
    loop.ended(connection: true)
    closeReason = reason
    cancelTimers()
    while let this = streams {
      // What nghttp2 has never opened was never sent: it is safe to try elsewhere.
      let id = this._withUnsafeGuaranteedRef { $0.id }
      let unsent = !isServer && nghttp2_session_find_stream(session, id) == nil
      this._withUnsafeGuaranteedRef { $0.isUnsent = unsent }
      close(this, code: unsent ? HTTP2Code.refusedStream : HTTP2Code.connectionLost)
    }
    if let session { nghttp2_session_del(session) }
    session = nil
    endTLS()
    backlog?.deallocate()
    backlog = nil
    drained = []
    congestion.store(false, ordering: .relaxed)
    let waiting = congested
    congested = []
    for waiter in waiting { waiter() }
    let goodbye =
      isOurWish || isServer && (reason == nil || reason?.code != 0 || reason?.kind == .tlsFailed)
    socket?.disconnect(lingering: goodbye)
    socket = nil
    sink = nil
    acceptStream = nil
    let unanswered = pings
    pings = []
    for ping in unanswered {
      ping.completion(.failure(reason ?? HTTP2Error(.connectionClosed, "the connection closed")))
    }
    let handler = self.handler
    self.handler = nil
    handler?.connectionDidClose(self, error: reason)
    tellTLSEnded(reason)
  }

  /// `tearDown`, once what waits for the socket is out: a peer that is left in peace gets a
  /// second to take it.
  func tearDownOnceSent() {
    guard isTerminating, backlog != nil, (closeReason?.code ?? 0) == HTTP2Code.noError else {
      return tearDown(closeReason)
    }
    guard farewellTimer == nil else { return }
    farewellTimer = loop.schedule(after: .seconds(1)) { [self] in tearDown(closeReason) }
  }

  /// Does the close a callback asked for; true when there was one.
  @inline(__always)
  func settlePendingClose() -> Bool {
    guard let reason = pendingClose, depth == 0 else { return false }
    pendingClose = nil
    tearDown(reason)
    return true
  }
}
