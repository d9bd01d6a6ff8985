import Glibc
import Testing

@testable import VencejoHTTP2

@Suite struct BandwidthTests {
  /// A path of 100 ms on which 1 MB may be under way: windows of 64 KiB are doubled until the
  /// path, no longer the window, is the limit.
  @Test func theWindowGrowsToTheProduct() {
    let product = 1_000_000
    var estimator = BandwidthEstimator(window: 65_536, limit: 16 << 20)
    for _ in 0..<50 {
      let arrived = min(estimator.window, product)
      _ = estimator.take(bytes: arrived, nanoseconds: 100_000_000)
    }
    #expect(estimator.window >= product)
    #expect(estimator.window <= 4 * product)
  }

  @Test func itNeverPassesItsLimitNorShrinks() {
    var estimator = BandwidthEstimator(window: 65_536, limit: 300_000)
    var last = estimator.window
    for round in 0..<100 {
      _ = estimator.take(bytes: 1 << 24, nanoseconds: Int64(1_000_000 / (round + 1)))
      #expect(estimator.window >= last && estimator.window <= 300_000)
      last = estimator.window
    }
    #expect(estimator.isDone)
  }

  /// A sender with little to say is not held back by the window.
  @Test func aSlowSenderChangesNothing() {
    var estimator = BandwidthEstimator(window: 65_536, limit: 16 << 20)
    for _ in 0..<50 { #expect(estimator.take(bytes: 10_000, nanoseconds: 1_000_000) == nil) }
    #expect(estimator.take(bytes: .max, nanoseconds: 0) != nil)
  }

  /// On a connection: a PING after half a window of data, and SETTINGS and WINDOW_UPDATE when
  /// the window was the limit.
  @Test func aFilledWindowIsRaised() throws {
    let h = try Harness {
      $0.initialStreamWindow = 64_000
      $0.initialConnectionWindow = 256_000
      $0.maxStreamWindow = 128_000
    }
    let connection = h.connection!
    try h.onLoop { connection.startMeasuring() }
    h.peer.preface()
    h.peer.frame(Frame.settings, 1)
    h.peer.open(1, "/hold")
    for _ in 0..<4 { h.peer.data(1, [UInt8](repeating: 0, count: 16_000)) }
    let ping = try #require(h.peer.next(Frame.ping))
    for _ in 0..<4 { h.peer.data(1, [UInt8](repeating: 0, count: 16_000)) }
    h.peer.frame(Frame.ping, 1, 0, ping.payload)
    let settings = try #require(h.peer.next(Frame.settings))
    #expect(settings.payload.count == 6)
    #expect(settings.payload[1] == 4 && settings.word(2) == 128_000)
    h.peer.frame(Frame.settings, 1)
    // At its limit: however much follows, no PING is sent any more.
    for _ in 0..<20 { h.peer.data(1, [UInt8](repeating: 0, count: 3_000)) }
    h.peer.frame(Frame.ping, 0, 0, [UInt8](repeating: 7, count: 8))
    #expect(h.peer.next(Frame.ping, ack: true) != nil)
    #expect(!h.peer.seen.contains { $0.type == Frame.ping && $0.flags & 1 == 0 })
  }

  @Test func smallCallsSendNoPings() throws {
    let h = try Harness()
    let connection = h.connection!
    try h.onLoop { connection.startMeasuring() }
    h.peer.preface()
    for call in 0..<50 { #expect(Harness.answers(h.peer, Int32(call * 2 + 1))) }
    #expect(!h.peer.seen.contains { $0.type == Frame.ping })
  }
}
