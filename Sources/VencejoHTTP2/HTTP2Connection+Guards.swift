import CNGHTTP2

/// What a peer may not do for long, or not too often.
///
/// The timers hold the connection strongly and `tearDown` cancels them all: a weak
/// reference would give the object a side table and every retain a slower path.
extension HTTP2Connection {
  func startTimers() {
    let configuration = limits.configuration
    handshakeTimer = loop.schedule(after: configuration.handshakeTimeout) { [self] in
      let missing = tls?.isEstablished == false ? "TLS handshake" : "HTTP/2 preface"
      timedOut(.handshakeTimedOut, "no \(missing) in time", HTTP2Code.settingsTimeout)
    }
    settingsTimer = loop.schedule(after: configuration.settingsTimeout) { [self] in
      timedOut(.settingsTimedOut, "no SETTINGS ACK in time", HTTP2Code.settingsTimeout)
    }
    if let idle = limits.idle { watchIdle(idle) }
    if let age = configuration.maxAge { watchAge(age.clampedNanoseconds) }
    if let interval = limits.keepaliveInterval { watchKeepalive(interval) }
  }

  func cancelTimers() {
    for timer in [
      handshakeTimer, settingsTimer, headersTimer, stallTimer, idleTimer, keepaliveTimer,
      shutdownTimer, ageTimer, farewellTimer, congestionTimer,
    ] { timer?.cancel() }
  }

  private func timedOut(_ kind: HTTP2Error.Kind, _ text: String, _ code: UInt32) {
    terminate(HTTP2Error(kind, text, code: code))
  }

  /// The peer does something that is legal, and too often.
  func abuse(_ text: String) {
    if let session, !isClosed, !isTerminating, text == Self.tooManyPings {
      // gRFC A8: by these words clients learn to send them less often. nghttp2's own GOAWAY,
      // which follows, has none.
      var words = Array("too_many_pings".utf8)
      _ = nghttp2_submit_goaway(
        session, UInt8(NGHTTP2_FLAG_NONE.rawValue),
        nghttp2_session_get_last_proc_stream_id(session), HTTP2Code.enhanceYourCalm, &words,
        words.count)
    }
    terminate(HTTP2Error(.excessiveLoad, text, code: HTTP2Code.enhanceYourCalm))
  }

  private static let tooManyPings = "too many PINGs without data"

  /// Frames that cost us work and move nothing. The account is full again whenever a
  /// HEADERS or DATA frame of ours goes out, so that the PINGs with which peers measure
  /// bandwidth never count.
  func countIdleFrame(_ what: String) {
    guard isServer, !idleFrames.take(now: loop.now) else { return }
    abuse("too many \(what) without data")
  }

  /// What a reset stream began was for nothing, and costs its peer nothing.
  func countReceivedReset() {
    guard isServer, !receivedResets.take(now: loop.now) else { return }
    abuse("too many streams were reset")
  }

  /// A peer can make a server reset streams with invalid frames as fast as it could
  /// reset them itself (CVE-2025-8671).
  func countSentReset(_ code: UInt32) {
    // Refusing costs nothing: no work was begun.
    guard isServer, code != HTTP2Code.noError, code != HTTP2Code.refusedStream,
      !sentResets.take(now: loop.now)
    else { return }
    abuse("too many streams had to be reset")
  }

  /// A header block has begun and not ended in one read.
  func watchHeaders() {
    let begun = headersSince
    headersTimer = loop.schedule(afterNanoseconds: limits.headers) { [self] in
      headersTimer = nil
      if headersSince == begun {
        timedOut(.headersTimedOut, "a header block took too long", HTTP2Code.enhanceYourCalm)
      } else if headersSince != 0 {
        watchHeaders()
      }
    }
  }

  /// Bytes wait for the socket or for a window.
  func watchStalls() {
    let pause = max(limits.stalledSend / 4, 1_000_000)
    stallTimer = loop.schedule(afterNanoseconds: pause) { [self] in
      guard !isClosed else { return }
      stallTimer = nil
      let now = loop.now
      if backlog != nil && now &- min(now, lastWrite) >= limits.stalledSend {
        tearDown(HTTP2Error(.sendStalled, "the peer reads nothing"))
        return
      }
      // A stream that still produces is held by its producer; one that has ended holds
      // its bytes for as long as the peer pleases.
      var next = streams
      while let stream = next?.takeUnretainedValue() {
        next = stream.next
        if stream.ending && stream.queuedBytes > 0
          && now &- min(now, stream.lastProgress) >= limits.stalledSend
        {
          stream.reset(HTTP2Code.cancel)
        }
      }
      if queuedTotal > 0 || backlog != nil { watchStalls() }
    }
  }

  private func watchIdle(_ after: UInt64) {
    idleTimer = loop.schedule(afterNanoseconds: after) { [self] in
      guard !isClosed, !isShuttingDown, let idle = limits.idle else { return }
      let now = loop.now
      let rested = openStreamCount > 0 ? 0 : now &- min(now, idleSince)
      if rested >= idle {
        shutdownGracefully()
      } else {
        watchIdle(idle &- rested)
      }
    }
  }

  private func watchAge(_ age: UInt64) {
    let spread = age / 10
    let after = age &- spread &+ UInt64.random(in: 0...max(spread &* 2, 1))
    ageTimer = loop.schedule(afterNanoseconds: after) { [self] in
      guard !isClosed else { return }
      shutdownGracefully()
      guard let grace = limits.configuration.maxAgeGrace else { return }
      ageTimer = loop.schedule(after: grace) { [self] in close(HTTP2Code.noError) }
    }
  }

  private func watchKeepalive(_ after: UInt64) {
    keepaliveTimer = loop.schedule(afterNanoseconds: after) { [self] in
      guard !isClosed, let interval = limits.keepaliveInterval else { return }
      let now = loop.now
      let silent = now &- min(now, lastRead)
      guard openStreamCount > 0 || limits.configuration.keepaliveWithoutStreams else {
        watchKeepalive(interval)
        return
      }
      guard silent >= interval else {
        watchKeepalive(interval &- silent)
        return
      }
      keepalivesSent &+= 1
      ping { [self] result in
        guard case .success = result else { return }
        keepaliveTimer?.cancel()
        watchKeepalive(interval)
      }
      keepaliveTimer = loop.schedule(afterNanoseconds: limits.keepaliveTimeout) { [self] in
        guard !isClosed else { return }
        // Any byte is a sign of life.
        if lastRead > now {
          watchKeepalive(interval)
        } else {
          tearDown(HTTP2Error(.keepaliveTimedOut, "the peer did not answer a PING"))
        }
      }
    }
  }
}
