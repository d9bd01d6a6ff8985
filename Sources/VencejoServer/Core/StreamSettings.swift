import VencejoProtobuf
import VencejoStore

/// The operator's settings, in one place: a copy would lie in the frame of each call that waits.
final class SharedSettings: Sendable {
  let configuration: Backend.Configuration
  init(_ configuration: Backend.Configuration) { self.configuration = configuration }
}

extension Backend.Configuration {
  /// The silence after which a stream sends a heartbeat: what was asked for, within bounds.
  func heartbeat(asked: Google.Duration?) -> Duration {
    guard let asked else { return heartbeatDefault }
    // Clamped in whole seconds first: a stranger's numbers must not overflow.
    guard asked.seconds < 3600 else { return heartbeats.upperBound }
    guard asked.seconds >= 0, asked.nanos >= 0 else { return heartbeats.lowerBound }
    return min(max(asked.duration, heartbeats.lowerBound), heartbeats.upperBound)
  }

  /// How long a stream may live. A session that ends sooner takes its stream with it; refreshed
  /// meanwhile, it costs the client a reconnect.
  func streamAge(of caller: Principal, now: Int64) -> Duration {
    min(streamAge, .milliseconds(max(0, (caller.sessionExpireTime - now) / 1000)))
  }
}
