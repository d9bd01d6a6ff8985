import VencejoHTTP2

/// One attempt to reach a server at several addresses: the first that answers wins (RFC 8305,
/// "Happy Eyeballs"). An address that is slow does not hold up the next one for longer than a
/// moment, one that refuses not at all.
///
/// `@unchecked Sendable`: confined to its loop.
final class ConnectionAttempt: @unchecked Sendable {
  private let loop: EventLoop
  private let configuration: ConnectionConfiguration
  private let tls: ClientTLS?
  /// RFC 8305, section 8: "Connection Attempt Delay".
  private let delay: Duration
  private var rest: ArraySlice<SocketAddress>
  /// Addresses that have neither answered nor failed.
  private var pending = 0
  /// Connections that stand and wait for the server's SETTINGS.
  private var candidates: [HTTP2Connection] = []
  private var timer: LoopTimer?
  private var completion: ((Result<HTTP2Connection, RPCError>) -> Void)?

  init(
    _ addresses: [SocketAddress], on loop: EventLoop, configuration: ConnectionConfiguration,
    tls: ClientTLS?, delay: Duration,
    completion: @escaping (Result<HTTP2Connection, RPCError>) -> Void
  ) {
    self.loop = loop
    self.configuration = configuration
    self.tls = tls
    self.delay = delay
    rest = Self.interleaved(addresses)[...]
    self.completion = completion
  }

  /// Families in turn, beginning with the first address's (RFC 8305, section 4).
  static func interleaved(_ addresses: [SocketAddress]) -> [SocketAddress] {
    guard let first = addresses.first else { return [] }
    let isSix = { (address: SocketAddress) in if case .ipv6 = address { true } else { false } }
    let same = addresses.filter { isSix($0) == isSix(first) }
    let other = addresses.filter { isSix($0) != isSix(first) }
    var result: [SocketAddress] = []
    for index in 0..<max(same.count, other.count) {
      if index < same.count { result.append(same[index]) }
      if index < other.count { result.append(other[index]) }
    }
    return result
  }

  func begin() {
    guard !rest.isEmpty else {
      return complete(
        .failure(RPCError(.unavailable, "the server has no address", origin: .transport)))
    }
    next()
  }

  /// Takes a connection that stands already.
  func begin(with connection: HTTP2Connection) {
    pending += 1
    stands(connection, at: connection.peerAddress)
  }

  /// Gives up; the completion is never called.
  func cancel() {
    completion = nil
    timer?.cancel()
    leaveCandidates(but: nil)
  }

  private func next() {
    timer?.cancel()
    timer = nil
    guard completion != nil, let address = rest.popFirst() else { return }
    pending += 1
    HTTP2Connection.connect(to: address, on: loop, configuration: configuration, tls: tls) {
      [self] result in
      switch result {
      case .success(let connection): stands(connection, at: address)
      case .failure(let error): failed(address, error)
      }
    }
    if completion != nil, !rest.isEmpty, timer == nil {
      timer = loop.schedule(after: delay) { [weak self] in self?.next() }
    }
  }

  private func stands(_ connection: HTTP2Connection, at address: SocketAddress) {
    guard completion != nil else { return connection.close() }
    candidates.append(connection)
    connection.handler = Candidate(self, address)
  }

  /// Only the server's SETTINGS show that it speaks HTTP/2, and how much it takes.
  fileprivate func opened(_ connection: HTTP2Connection) {
    leaveCandidates(but: connection)
    complete(.success(connection))
  }

  fileprivate func failed(_ address: SocketAddress, _ error: HTTP2Error?) {
    pending -= 1
    if !rest.isEmpty { return next() }
    guard pending == 0 else { return }
    let reason = error.map { "\($0)" } ?? "the server closed it"
    complete(
      .failure(
        RPCError(.unavailable, "no connection to \(address): \(reason)", origin: .transport)))
  }

  private func leaveCandidates(but winner: HTTP2Connection?) {
    let left = candidates
    candidates = []
    for connection in left where connection !== winner {
      connection.handler = nil
      connection.close()
    }
  }

  private func complete(_ result: Result<HTTP2Connection, RPCError>) {
    timer?.cancel()
    timer = nil
    let completion = completion
    self.completion = nil
    completion?(result)
  }
}

/// Watches one of the connections until it is chosen.
private final class Candidate: ConnectionHandler {
  let attempt: ConnectionAttempt
  let address: SocketAddress

  init(_ attempt: ConnectionAttempt, _ address: SocketAddress) {
    self.attempt = attempt
    self.address = address
  }

  func connectionDidOpen(_ connection: HTTP2Connection) { attempt.opened(connection) }

  func connectionDidClose(_ connection: HTTP2Connection, error: HTTP2Error?) {
    attempt.failed(address, error)
  }
}
