import CNGHTTP2

/// A configuration in the units the hot paths use; one for all connections of a
/// listener.
///
/// `@unchecked Sendable`: nothing changes after `init`; nghttp2 only reads `options`.
final class ConnectionLimits: @unchecked Sendable {
  let configuration: ConnectionConfiguration
  let options: OpaquePointer?
  let maxHeaderListSize: Int
  let highWaterMark: Int
  let lowWaterMark: Int
  let resetsPerStream: UInt64
  let maxQueuedFrames: Int
  let maxQueuedBytes: Int
  let stalledSend: UInt64
  let headers: UInt64
  let idle: UInt64?
  let keepaliveInterval: UInt64?
  let keepaliveTimeout: UInt64
  /// Milliseconds that bytes may remain unacknowledged; with keepalive only.
  let userTimeout: Int32?

  init(_ configuration: ConnectionConfiguration) {
    self.configuration = configuration
    maxHeaderListSize = min(max(configuration.maxHeaderListSize, 1), 1 << 26)
    highWaterMark = max(configuration.highWaterMark, 0)
    lowWaterMark = min(max(configuration.lowWaterMark, 0), highWaterMark)
    resetsPerStream = UInt64(max(configuration.receivedResetsPerStream, 0))
    maxQueuedFrames =
      min(max(configuration.maxQueuedFrames, 16), 1 << 30)
      + 2 * min(max(configuration.maxConcurrentStreams, 0), 1 << 30)
    maxQueuedBytes = max(configuration.maxQueuedBytes, 1)
    stalledSend = configuration.stalledSendTimeout.clampedNanoseconds
    headers = configuration.headersTimeout.clampedNanoseconds
    idle = configuration.idleTimeout?.clampedNanoseconds
    keepaliveInterval = configuration.keepaliveInterval?.clampedNanoseconds
    keepaliveTimeout = configuration.keepaliveTimeout.clampedNanoseconds

    userTimeout = keepaliveInterval == nil ? nil : Int32(clamping: keepaliveTimeout / 1_000_000)

    var made: OpaquePointer?
    nghttp2_option_new(&made)
    options = made
    nghttp2_option_set_no_auto_window_update(made, 1)
    // Closed streams are kept for the old priority tree otherwise.
    nghttp2_option_set_no_closed_streams(made, 1)
    // Other gRPC implementations send such values; PROTOCOL-HTTP2 lets the receiver strip them.
    nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(made, 1)
    nghttp2_option_set_max_continuations(made, max(configuration.maxContinuations, 0))
    // Counted here instead: nghttp2 does not set resets against what was answered.
    nghttp2_option_set_stream_reset_rate_limit(made, .max, .max)
    nghttp2_option_set_max_send_header_block_length(made, HeaderList.maxSize + 64)
    // Per SETTINGS frame; six are defined, a few more may be extensions.
    nghttp2_option_set_max_settings(made, 32)
    nghttp2_option_set_max_outbound_ack(made, max(configuration.idleFrameBurst, 1) * 2)
  }

  deinit { nghttp2_option_del(options) }

  func settings(isServer: Bool) -> [nghttp2_settings_entry] {
    func entry(_ id: nghttp2_settings_id, _ value: Int) -> nghttp2_settings_entry {
      nghttp2_settings_entry(settings_id: Int32(id.rawValue), value: UInt32(clamping: value))
    }
    var list = [
      entry(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, Self.window(configuration.initialStreamWindow)),
      entry(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, maxHeaderListSize),
      entry(NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1),
    ]
    if isServer {
      list.append(
        entry(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, max(configuration.maxConcurrentStreams, 0)))
    } else {
      list.append(entry(NGHTTP2_SETTINGS_ENABLE_PUSH, 0))
    }
    let frame = min(max(configuration.maxFrameSize, 16_384), 16_777_215)
    if frame != 16_384 { list.append(entry(NGHTTP2_SETTINGS_MAX_FRAME_SIZE, frame)) }
    return list
  }

  static func window(_ size: Int) -> Int { min(max(size, 0), Int(Int32.max)) }
}

/// So many at once, and so many more a second.
struct TokenBucket {
  private var tokens: UInt64
  private var last: UInt64
  private let burst: UInt64
  private let rate: UInt64

  /// `burst` events at once and `rate` a second, from the time `now` in nanoseconds.
  init(burst: Int, rate: Int, now: UInt64) {
    self.burst = UInt64(max(burst, 0))
    self.rate = UInt64(max(rate, 0))
    tokens = self.burst
    last = now
  }

  /// Takes one; false when there is none.
  mutating func take(now: UInt64) -> Bool {
    if now > last {
      let (scaled, overflow) = (now &- last).multipliedReportingOverflow(by: rate)
      let earned = overflow ? burst : scaled / 1_000_000_000
      if earned > 0 {
        tokens = earned >= burst &- tokens ? burst : tokens &+ earned
        last = now
      }
    }
    guard tokens > 0 else { return false }
    tokens &-= 1
    return true
  }

  mutating func refill() { tokens = burst }

  mutating func give(_ count: UInt64) {
    tokens = count >= burst &- tokens ? burst : tokens &+ count
  }
}
