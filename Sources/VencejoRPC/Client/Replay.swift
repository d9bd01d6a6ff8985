/// The messages of a stream of requests, kept as long as the call may be made again.
struct Replay {
  /// What is kept of a call; one that has sent more is made only once.
  private static let limit = 256 * 1024

  private(set) var frames: [[UInt8]] = []
  private var bytes = 0
  var hasEnded = false

  var isTooLong: Bool { bytes > Self.limit }

  mutating func add(_ frame: [UInt8]) {
    bytes += frame.count
    frames.append(frame)
  }
}
