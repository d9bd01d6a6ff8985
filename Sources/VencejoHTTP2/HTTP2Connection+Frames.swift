import CNGHTTP2

/// What nghttp2's callbacks do, frame by frame.
extension HTTP2Connection {
  func beginRequest(_ id: Int32) -> Int32 {
    guard let acceptStream, let session else {
      decoding = nil
      _ = nghttp2_submit_rst_stream(
        session, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, HTTP2Code.refusedStream)
      return 0
    }
    let stream = HTTP2Stream(id: id, connection: self)
    let this = Unmanaged.passRetained(stream)
    nghttp2_session_set_stream_user_data(session, id, this.toOpaque())
    link(this)
    decoding = this
    stream.slot.fill(acceptStream(stream))
    return 0
  }

  /// One field. nghttp2 never enforces the size it announces, and a few bytes of HPACK
  /// may stand for thousands: the sum is taken here (RFC 9113, section 6.5.2).
  @inline(__always)
  func decode(
    _ stream: HTTP2Stream, _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
  ) -> Int32 {
    let size = Int(stream.headerListSize) &+ name.count &+ value.count &+ 32
    stream.headerListSize = Int32(clamping: size)
    if size > maxHeaderListSize { return overflow(stream, size) }
    if stream.isReset { return 0 }
    stream.slot.header(stream, name, value)
    return 0
  }

  private func overflow(_ stream: HTTP2Stream, _ size: Int) -> Int32 {
    stream.headerListOverflowed = true
    if size > maxHeaderListSize &* 16 {
      abuse("a header list sixteen times the limit")
      return NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
    }
    if size > maxHeaderListSize &* 4 { stream.reset(HTTP2Code.enhanceYourCalm) }
    return 0
  }

  func headersDidEnd(_ stream: HTTP2Stream, _ ends: Bool) {
    if ends {
      stream.remoteEnded = true
      stream.inboundEnding = true
    }
    guard !stream.isReset else { return }
    stream.slot.headersEnd(stream, ends)
    if ends && !stream.isReset { stream.slot.end(stream) }
  }

  func remoteDidEnd(_ stream: HTTP2Stream) {
    stream.remoteEnded = true
    stream.inboundEnding = true
    if !stream.isReset { stream.slot.end(stream) }
  }

  /// Our last frame of a stream is out. A peer that still sends is told that nobody
  /// reads, with NO_ERROR: CANCEL would make it drop the response (RFC 9113, 8.1).
  func localDidEnd(_ stream: HTTP2Stream) {
    guard stream.finishesEarly else { return }
    stream.finishesEarly = false
    earlyFinishes &-= 1
    guard !stream.remoteEnded, !stream.isReset else { return }
    stream.isReset = true
    _ = nghttp2_submit_rst_stream(
      session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.id, HTTP2Code.noError)
  }

  func receiveControl(_ frame: UnsafePointer<nghttp2_frame>, _ head: nghttp2_frame_hd) {
    let acknowledges = head.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0
    switch nghttp2_frame_type(UInt32(head.type)) {
    case NGHTTP2_SETTINGS:
      if acknowledges {
        settingsTimer?.cancel()
        settingsTimer = nil
      } else {
        receiveSettings()
      }
    case NGHTTP2_PING:
      if acknowledges {
        pongReceived(frame.pointee.ping)
      } else {
        countIdleFrame("PINGs")
      }
    case NGHTTP2_RST_STREAM:
      countReceivedReset()
    case NGHTTP2_GOAWAY:
      let goAway = frame.pointee.goaway
      if !isServer { isShuttingDown = true }
      if goAway.error_code != 0 && closeReason == nil {
        closeReason = HTTP2Error(
          .goAway, "the peer went away with code \(goAway.error_code)\(Self.words(of: goAway))",
          code: goAway.error_code)
      }
      handler?.connection(
        self, didReceiveGoAway: goAway.last_stream_id, code: goAway.error_code)
    default:
      break
    }
  }

  /// What the peer says of its going: a few words in ASCII, or nothing.
  private static func words(of goAway: nghttp2_goaway) -> String {
    guard let data = goAway.opaque_data, goAway.opaque_data_len > 0 else { return "" }
    let bytes = UnsafeBufferPointer(start: data, count: min(goAway.opaque_data_len, 128))
    guard bytes.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) else { return "" }
    return ": " + String(decoding: bytes, as: UTF8.self)
  }

  /// A GOAWAY of ours is out: the notice of a graceful end, or nghttp2's own answer to
  /// what the peer did.
  func goAwaySent(_ frame: nghttp2_goaway) {
    if isGoingAway && !hasSentFinalGoAway {
      // Only now: a PING queued beside the notice would overtake it.
      ping { [self] _ in sendFinalGoAway() }
    } else if frame.error_code != HTTP2Code.noError && closeReason == nil {
      isShuttingDown = true
      closeReason = HTTP2Error(
        .protocolViolation, "the peer broke HTTP/2's rules (code \(frame.error_code))",
        code: frame.error_code)
    }
  }

  private func receiveSettings() {
    if isOpen {
      countIdleFrame("SETTINGS")
    } else {
      isOpen = true
      handshakeTimer?.cancel()
      handshakeTimer = nil
      handler?.connectionDidOpen(self)
    }
    // The limit may have risen.
    if canOpenStream {
      openWasRefused = false
      handler?.connectionCanOpenStreams(self)
    }
  }

  private func pongReceived(_ ping: nghttp2_ping) {
    let number = withUnsafeBytes(of: ping.opaque_data) { $0.loadUnaligned(as: UInt64.self) }
    guard let index = pings.firstIndex(where: { $0.number == number }) else { return }
    let ping = pings.remove(at: index)
    let now = Syscalls.monotonicNow()
    ping.completion(.success(.nanoseconds(Int64(clamping: now &- min(now, ping.sent)))))
  }
}
