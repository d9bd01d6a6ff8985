import CNGHTTP2

/// Estimates how many bytes a peer can have under way, the bandwidth-delay product, from what
/// arrives between a PING and its answer.
///
/// A window that the peer fills within one round trip holds it back: it is doubled, up to a
/// limit. A PING goes out only after half a window of data, so that small calls pay nothing.
struct BandwidthEstimator {
  /// The stream window the peer has now.
  private(set) var window: Int
  private let limit: Int
  private var roundTrip = 0.0
  private var samples = 0
  private var best = 0.0

  init(window: Int, limit: Int) {
    self.window = window
    self.limit = limit
  }

  /// Nothing is left to find out.
  var isDone: Bool { window >= limit }

  /// How much must arrive before the next PING.
  var pause: Int { max(window / 2, 1) }

  /// Takes a sample: `bytes` came in the `nanoseconds` of a round trip. The larger window, or
  /// nil when the present one is enough.
  mutating func take(bytes: Int, nanoseconds: Int64) -> Int? {
    let seconds = max(Double(nanoseconds), 1) / 1e9
    samples += 1
    // The mean of the first ten, then a tenth of each: one slow answer means little.
    roundTrip += (seconds - roundTrip) / Double(min(samples, 10))
    let rate = Double(bytes) / (roundTrip * 1.5)
    guard rate > best else { return nil }
    best = rate
    guard !isDone, bytes >= window / 3 * 2 else { return nil }
    window = bytes >= limit / 2 ? limit : max(bytes * 2, window)
    return window
  }
}

extension HTTP2Connection {
  func startMeasuring() {
    let window = ConnectionLimits.window(limits.configuration.initialStreamWindow)
    let limit = ConnectionLimits.window(limits.configuration.maxStreamWindow)
    guard limit > window else { return }
    let estimator = BandwidthEstimator(window: window, limit: limit)
    nextProbe = estimator.pause
    bandwidth = estimator
  }

  func probeBandwidth() {
    nextProbe = .max
    let before = receivedBytes
    ping { [self] result in
      guard case .success(let roundTrip) = result else { return }
      sampled(receivedBytes &- before, roundTrip)
    }
  }

  private func sampled(_ bytes: Int, _ roundTrip: Duration) {
    guard var estimator = bandwidth, let session, !isTerminating else { return }
    let nanoseconds = Int64(clamping: roundTrip.clampedNanoseconds)
    if let window = estimator.take(bytes: bytes, nanoseconds: nanoseconds) {
      let none = UInt8(NGHTTP2_FLAG_NONE.rawValue)
      let whole = ConnectionLimits.window(
        max(window &* 4, limits.configuration.initialConnectionWindow))
      _ = nghttp2_session_set_local_window_size(session, none, 0, Int32(whole))
      var setting = nghttp2_settings_entry(
        settings_id: Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue), value: UInt32(window))
      _ = nghttp2_submit_settings(session, none, &setting, 1)
      markDirty()
    }
    bandwidth = estimator.isDone ? nil : estimator
    nextProbe = estimator.isDone ? .max : receivedBytes &+ estimator.pause
  }
}
