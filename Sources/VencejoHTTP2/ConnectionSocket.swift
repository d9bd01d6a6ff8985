import CLinux
import Glibc

/// A connection's descriptor. It holds the connection until `disconnect`.
final class ConnectionSocket: LoopSource {
  @exclusivity(unchecked) private var connection: HTTP2Connection?
  /// Half closed, and reading on.
  @exclusivity(unchecked) private(set) var isLingering = false
  private var lingerTimer: LoopTimer?

  func attach(_ connection: HTTP2Connection) -> Bool {
    self.connection = connection
    connection.socket = self
    return register(EPOLLIN.rawValue)
  }

  override func ready(_ events: UInt32) {
    guard connection != nil else {
      discard()
      return
    }
    if events & ~EPOLLOUT.rawValue != 0 { readAll() }
    if events & EPOLLOUT.rawValue != 0 { connection?.markDirty() }
  }

  private func readAll() {
    // A full buffer says that there is more; four of them are a fair share of a tick.
    for _ in 0..<4 {
      guard fd >= 0, let connection else { return }
      let count = recv(fd, loop.readBuffer, EventLoop.readSize, 0)
      if count > 0 {
        let bytes = UnsafeRawBufferPointer(start: loop.readBuffer, count: count)
        if let tls = connection.tls {
          connection.receive(bytes, tls)
        } else {
          connection.receive(bytes)
        }
        if count < EventLoop.readSize { return }
      } else if count == 0 {
        connection.receiveEnd()
        return
      } else {
        switch errno {
        case EAGAIN: return
        case EINTR: continue
        default:
          connection.tearDown(Syscalls.failure("recv", .connectionClosed))
          return
        }
      }
    }
  }

  @inline(__always)
  func write(_ bytes: UnsafeMutablePointer<UInt8>, _ count: Int) -> Int {
    while true {
      let sent = Glibc.send(fd, bytes, count, Int32(MSG_NOSIGNAL))
      if sent >= 0 { return sent }
      if errno == EAGAIN { return 0 }
      if errno != EINTR { return -1 }
    }
  }

  func wantWrite(_ on: Bool) {
    want(on ? EPOLLIN.rawValue | EPOLLOUT.rawValue : EPOLLIN.rawValue)
  }

  /// Lets the connection go. Closing a socket with unread bytes makes the kernel throw
  /// away what was sent, our GOAWAY too: so a lingering one reads on for a second.
  func disconnect(lingering: Bool) {
    connection = nil
    guard lingering, fd >= 0, shutdown(fd, Int32(SHUT_WR)) == 0 else {
      closeDescriptor()
      return
    }
    isLingering = true
    want(EPOLLIN.rawValue)
    lingerTimer = loop.schedule(after: .seconds(1)) { [weak self] in self?.closeDescriptor() }
  }

  private func discard() {
    guard fd >= 0 else { return }
    let count = recv(fd, loop.readBuffer, EventLoop.readSize, 0)
    if count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR)) { return }
    lingerTimer?.cancel()
    closeDescriptor()
  }

  override func loopWillStop() {
    guard !isLingering else { return }
    if let connection {
      connection.isTerminating = true
      connection.tearDown(HTTP2Error(.loopUnavailable, "the event loop ends"))
    }
    if !isLingering { closeDescriptor() }
  }
}
