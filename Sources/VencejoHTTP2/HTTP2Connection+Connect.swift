import CLinux
import Glibc

extension HTTP2Connection {
  /// Connects a client; from any thread. `completion` runs on the loop once the
  /// transport stands, TLS's handshake included, and the preface is queued, or with
  /// `.connectFailed`, `.connectTimedOut`, `.tlsFailed`, `.handshakeTimedOut`, `.system` or
  /// `.loopUnavailable`.
  public static func connect(
    to address: SocketAddress, on loop: EventLoop, configuration: ConnectionConfiguration,
    tls: ClientTLS? = nil,
    completion: @escaping @Sendable (Result<HTTP2Connection, HTTP2Error>) -> Void
  ) {
    let limits = ConnectionLimits(configuration)
    guard loop.isCurrent else {
      let accepted = loop.tryExecute { start(address, loop, limits, tls, completion) }
      if !accepted {
        completion(.failure(HTTP2Error(.loopUnavailable, "the event loop has ended")))
      }
      return
    }
    start(address, loop, limits, tls, completion)
  }

  /// Makes a connection of a connected stream socket (`socketpair`, an inherited one),
  /// whose descriptor it then owns. On the loop.
  public static func adopt(
    descriptor: Int32, isServer: Bool, on loop: EventLoop, configuration: ConnectionConfiguration
  ) throws(HTTP2Error) -> HTTP2Connection {
    let flags = fcntl(descriptor, F_GETFL)
    guard flags >= 0, fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) >= 0 else {
      throw Syscalls.failure("fcntl")
    }
    return try adopt(descriptor, isServer: isServer, on: loop, ConnectionLimits(configuration))
  }

  static func adopt(
    _ fd: Int32, isServer: Bool, on loop: EventLoop, _ limits: ConnectionLimits,
    _ tls: TLSSession? = nil
  ) throws(HTTP2Error) -> HTTP2Connection {
    let local = SocketAddress.local(of: fd) ?? .unix("")
    if !local.isUnix { Syscalls.setOption(fd, Int32(IPPROTO_TCP), TCP_NODELAY, 1) }
    let connection = HTTP2Connection(
      loop: loop, isServer: isServer, limits: limits,
      peerAddress: SocketAddress.peer(of: fd) ?? .unix(""), localAddress: local)
    connection.tls = tls
    connection.awaitsPreface = isServer && tls == nil
    if local.isUnix {
      connection.peerCredentials = PeerCredentials(of: fd)
    } else {
      connection.startMeasuring()
      if let timeout = limits.userTimeout {
        // Keepalive finds a dead peer only when nothing is under way (gRFC A18).
        Syscalls.setOption(fd, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, timeout)
      }
    }
    guard ConnectionSocket(loop: loop, fd: fd).attach(connection) else {
      let failure = Syscalls.failure("epoll_ctl")
      connection.tearDown(failure)
      throw failure
    }
    return connection
  }

  private static func start(
    _ address: SocketAddress, _ loop: EventLoop, _ limits: ConnectionLimits, _ tls: ClientTLS?,
    _ completion: @escaping (Result<HTTP2Connection, HTTP2Error>) -> Void
  ) {
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let fd = Glibc.socket(address.family, kind, 0)
    guard fd >= 0 else {
      completion(.failure(Syscalls.failure("socket")))
      return
    }
    let result = address.withSockAddr { Glibc.connect(fd, $0, $1) }
    if result == 0 {
      finish(fd, loop, limits, tls, completion)
    } else if errno == EINPROGRESS {
      let pending = PendingConnect(
        loop: loop, fd: fd, address: address, limits: limits, tls: tls, completion)
      pending.begin()
    } else {
      let failure = Syscalls.failure("connect to \(address)", .connectFailed)
      Glibc.close(fd)
      completion(.failure(failure))
    }
  }

  fileprivate static func finish(
    _ fd: Int32, _ loop: EventLoop, _ limits: ConnectionLimits, _ tls: ClientTLS?,
    _ completion: @escaping (Result<HTTP2Connection, HTTP2Error>) -> Void
  ) {
    do throws(HTTP2Error) {
      guard let tls else {
        completion(.success(try adopt(fd, isServer: false, on: loop, limits)))
        return
      }
      let session: TLSSession
      do throws(HTTP2Error) {
        session = try tls.session()
      } catch {
        Glibc.close(fd)
        throw error
      }
      let connection = try adopt(fd, isServer: false, on: loop, limits, session)
      connection.beginTLS(session) { error in
        completion(error.map { .failure($0) } ?? .success(connection))
      }
    } catch {
      completion(.failure(error))
    }
  }
}

/// A socket on its way to the other end.
private final class PendingConnect: LoopSource {
  private let address: SocketAddress
  private let limits: ConnectionLimits
  private let tls: ClientTLS?
  private var completion: ((Result<HTTP2Connection, HTTP2Error>) -> Void)?
  private var timer: LoopTimer?

  init(
    loop: EventLoop, fd: Int32, address: SocketAddress, limits: ConnectionLimits,
    tls: ClientTLS?, _ completion: @escaping (Result<HTTP2Connection, HTTP2Error>) -> Void
  ) {
    self.address = address
    self.limits = limits
    self.tls = tls
    self.completion = completion
    super.init(loop: loop, fd: fd)
  }

  func begin() {
    guard register(EPOLLOUT.rawValue) else {
      fail(Syscalls.failure("epoll_ctl"))
      return
    }
    timer = loop.schedule(after: limits.configuration.connectTimeout) { [weak self] in
      guard let self else { return }
      fail(HTTP2Error(.connectTimedOut, "connect to \(address): timed out"))
    }
  }

  override func ready(_ events: UInt32) {
    guard fd >= 0, let completion else { return }
    var code: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    _ = getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size)
    guard code == 0 else {
      fail(Syscalls.failure("connect to \(address)", .connectFailed, code: code))
      return
    }
    self.completion = nil
    timer?.cancel()
    HTTP2Connection.finish(releaseDescriptor(), loop, limits, tls, completion)
  }

  private func fail(_ error: HTTP2Error) {
    let completion = completion
    self.completion = nil
    timer?.cancel()
    closeDescriptor()
    completion?(.failure(error))
  }

  override func loopWillStop() {
    fail(HTTP2Error(.loopUnavailable, "the event loop ends"))
  }
}
