import Glibc
import Synchronization
import VencejoHTTP2

extension Server {
  /// A channel to this server without a network, for tests and for programs that hold both
  /// ends: everything is as over a socket, windows, limits and deadlines included.
  ///
  /// To the server such a client comes over a Unix socket. After `shutdown()` calls fail
  /// with UNAVAILABLE.
  public func channel(configuration: Channel.Configuration = .init()) -> Channel {
    Channel(.inProcess { [weak self] in self?.acceptPair() }, configuration: configuration)
  }

  /// Serves one end of a new pair of sockets; the descriptor of the other, nil when the
  /// server is shut down or the system has none left.
  private func acceptPair() -> Int32? {
    guard !isShutDown else { return nil }
    var ends: [Int32] = [-1, -1]
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { return nil }
    let host = nextHost()
    let (ours, theirs) = (ends[0], ends[1])
    host.loop.execute {
      // Fails where epoll does; the client then sees its end closed or falls silent and times
      // out, as with any server that dies.
      let connection = try? HTTP2Connection.adopt(
        descriptor: ours, isServer: true, on: host.loop, configuration: host.connection)
      if let connection { host.add(connection) }
    }
    return theirs
  }
}
