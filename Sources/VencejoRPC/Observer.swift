public import VencejoHTTP2

/// Is told of every call and connection of a channel or a server: the place for metrics.
///
/// The functions are called on event loops, and `callBegan` of a client by whoever makes the
/// call: they must be quick and never wait. They do nothing unless they are written. A channel or server without observers pays nothing.
public protocol RPCObserver: Sendable {
  /// Whether it wants to hear of calls and attempts too, not of connections only; true unless it
  /// says otherwise. Where nobody wants to, calls cost nothing more.
  var observesCalls: Bool { get }
  /// A call was made (client), or its request's head has come (server).
  func callBegan(_ call: CallReport)
  /// The call is over.
  func callEnded(_ call: CallReport)
  /// A client tries a call for the first time, or again (gRFC A6; transparent retries too).
  func attemptBegan(_ call: CallReport)
  /// The attempt is over; sizes and duration are its own.
  func attemptEnded(_ call: CallReport)
  /// A connection to `peer` stands, before TLS.
  func connectionBegan(_ peer: SocketAddress)
  /// It is gone; `error` says why when that was not regular.
  func connectionEnded(_ peer: SocketAddress, _ error: HTTP2Error?)
}

extension RPCObserver {
  public var observesCalls: Bool { true }
  public func callBegan(_ call: CallReport) {}
  public func callEnded(_ call: CallReport) {}
  public func attemptBegan(_ call: CallReport) {}
  public func attemptEnded(_ call: CallReport) {}
  public func connectionBegan(_ peer: SocketAddress) {}
  public func connectionEnded(_ peer: SocketAddress, _ error: HTTP2Error?) {}
}

/// What an observer learns of a call or an attempt.
public struct CallReport: Sendable {
  /// `/package.Service/Method`.
  public let method: String
  /// Whether the method is one of a service that is served, or of a call with types on a
  /// client. Other names come from peers: there may be any number of them.
  public let isRegistered: Bool
  /// On a server: whether interceptors and handler saw the call. Those that were refused before
  /// are known to observers only.
  public internal(set) var isHandled = false
  /// What the channel was made for; empty on a server.
  public let target: String
  /// Nil while it lasts.
  public internal(set) var status: StatusCode?
  /// Since it began.
  public internal(set) var duration: Duration = .zero
  public internal(set) var sentMessages = 0
  public internal(set) var receivedMessages = 0
  /// Of messages as they travel, compressed, without prefixes and HTTP/2's framing.
  public internal(set) var sentBytes = 0
  public internal(set) var receivedBytes = 0
}

/// Gathers what is reported of one call or attempt.
///
/// `@unchecked Sendable`: confined to the call's loop once the call has begun.
final class CallTally: @unchecked Sendable {
  private let observers: [any RPCObserver]
  private var report: CallReport
  private let start = ContinuousClock.now
  private let isAttempt: Bool
  private var isOver = false
  /// For channelz; nil when nobody looks.
  private var counts: CallCounts?
  private var socket: SocketCounts?

  init(
    _ observers: [any RPCObserver], method: String, isRegistered: Bool, target: String,
    isAttempt: Bool = false, counts: CallCounts? = nil
  ) {
    self.observers = observers
    self.isAttempt = isAttempt
    self.counts = counts
    counts?.begin()
    report = CallReport(method: method, isRegistered: isRegistered, target: target)
    for observer in observers {
      if isAttempt { observer.attemptBegan(report) } else { observer.callBegan(report) }
    }
  }

  /// A new attempt of this call.
  func attempt() -> CallTally {
    CallTally(
      observers, method: report.method, isRegistered: report.isRegistered, target: report.target,
      isAttempt: true)
  }

  /// The stream is open on this connection.
  func opened(on connection: HTTP2Connection) {
    guard let entry = connection.companion as? ChannelzEntry else { return }
    socket = entry.socket
    socket?.begin()
    // An attempt counts with the subchannel it went by.
    if isAttempt, counts == nil, let subchannel = entry.parent {
      counts = subchannel.calls
      counts?.begin()
    }
  }

  /// Interceptors and handler take over.
  func handled() { report.isHandled = true }

  /// A frame of one message has been handed to the stream.
  func sent(_ frameBytes: Int) {
    report.sentMessages += 1
    report.sentBytes += max(0, frameBytes - Deframer.prefixLength)
    socket?.sent()
  }

  /// Bytes of DATA have come, and with them the ends of so many messages.
  func received(_ bytes: Int) { report.receivedBytes += bytes }
  func receivedMessage() {
    report.receivedMessages += 1
    report.receivedBytes -= Deframer.prefixLength
    socket?.received()
  }

  /// The first end counts. `regularly`: the server has ended the stream.
  func end(_ status: StatusCode, regularly: Bool = false) {
    guard !isOver else { return }
    isOver = true
    report.status = status
    report.duration = ContinuousClock.now - start
    counts?.end(status)
    socket?.end(regularly)
    for observer in observers {
      if isAttempt { observer.attemptEnded(report) } else { observer.callEnded(report) }
    }
  }
}
