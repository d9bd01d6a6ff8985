import CLinux
import Glibc
import Synchronization

/// Accepts connections on one address and deals them to loops in turn.
///
/// One socket on the first loop accepts for all: with SO_REUSEPORT a second server
/// on a busy port would silently take a share of the connections, and here that is
/// an error.
public final class Listener: Sendable {
  /// The address it listens on, with the real port where 0 was asked for.
  public let localAddress: SocketAddress
  private let source: AcceptSource

  /// Binds and listens. `accept` runs on each new connection's loop, before anything
  /// is read from it: the place to set `handler` and `acceptStream`.
  ///
  /// Throws `.addressInUse` when somebody listens there, `.invalidAddress` without
  /// loops, and `.system` otherwise. A Unix socket nobody listens on is replaced; a new
  /// one is its owner's alone (mode 0600).
  public init(
    address: SocketAddress, loops: [EventLoop], configuration: ConnectionConfiguration,
    tls: ServerTLS? = nil, accept: @escaping @Sendable (HTTP2Connection) -> Void
  ) throws(HTTP2Error) {
    guard let first = loops.first else {
      throw HTTP2Error(.invalidAddress, "a listener needs an event loop")
    }
    let fd = try Self.bind(address)
    localAddress = address.isUnix ? address : SocketAddress.local(of: fd) ?? address
    source = AcceptSource(
      fd: fd, address: localAddress, loops: loops, first: first,
      limits: ConnectionLimits(configuration), tls: tls, accept: accept)
    let source = source
    guard first.tryExecute({ source.begin() }) else {
      Glibc.close(fd)
      throw HTTP2Error(.loopUnavailable, "the event loop has ended")
    }
  }

  /// Stops accepting and frees the address before it returns; connections live on.
  public func close() {
    let source = source
    if source.loop.isCurrent {
      source.stop()
      return
    }
    let done = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
    sem_init(done, 0, 0)
    defer {
      sem_destroy(done)
      done.deallocate()
    }
    nonisolated(unsafe) let signal = done  // lives until the wait below is over
    guard
      source.loop.tryExecute({
        source.stop()
        sem_post(signal)
      })
    else { return }
    while sem_wait(done) != 0 {}
  }

  static func bind(_ address: SocketAddress) throws(HTTP2Error) -> Int32 {
    if case .unix(let path) = address, !path.hasPrefix("\0") { try removeStale(path, address) }
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let fd = socket(address.family, kind, 0)
    guard fd >= 0 else { throw Syscalls.failure("socket") }
    if address.isUnix {
      // The kernel gives the file the socket's own mode: no moment in which others
      // could connect, and no process-wide umask.
      _ = fchmod(fd, 0o600)
    } else {
      Syscalls.setOption(fd, SOL_SOCKET, SO_REUSEADDR, 1)
      if case .ipv6 = address {
        Syscalls.setOption(fd, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1)
      }
    }
    guard address.withSockAddr({ Glibc.bind(fd, $0, $1) }) == 0, listen(fd, 4_096) == 0 else {
      let kind: HTTP2Error.Kind = errno == EADDRINUSE ? .addressInUse : .system
      let failure = Syscalls.failure("listen on \(address)", kind)
      Glibc.close(fd)
      throw failure
    }
    return fd
  }

  /// Unlinks a socket file nobody answers at.
  private static func removeStale(
    _ path: String, _ address: SocketAddress
  ) throws(HTTP2Error) {
    var info = stat()
    guard lstat(path, &info) == 0 else { return }
    guard info.st_mode & S_IFMT == S_IFSOCK else {
      throw HTTP2Error(.addressInUse, "listen on \(address): the file is not a socket")
    }
    let probe = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
    guard probe >= 0 else { throw Syscalls.failure("socket") }
    defer { Glibc.close(probe) }
    let answered = address.withSockAddr { Glibc.connect(probe, $0, $1) } == 0
    if answered || errno != ECONNREFUSED {
      throw Syscalls.failure("listen on \(address)", .addressInUse, code: EADDRINUSE)
    }
    unlink(path)
  }
}

/// The listening socket.
///
/// `@unchecked Sendable`: after `init` only the loop's thread touches it.
private final class AcceptSource: LoopSource, @unchecked Sendable {
  private let address: SocketAddress
  private let loops: [EventLoop]
  private let limits: ConnectionLimits
  private let tls: ServerTLS?
  private let accept: @Sendable (HTTP2Connection) -> Void
  private var turn = 0
  private var pause: UInt64 = 0
  private var timer: LoopTimer?
  private var inode: ino_t = 0

  init(
    fd: Int32, address: SocketAddress, loops: [EventLoop], first: EventLoop,
    limits: ConnectionLimits, tls: ServerTLS?,
    accept: @escaping @Sendable (HTTP2Connection) -> Void
  ) {
    self.address = address
    self.loops = loops
    self.limits = limits
    self.tls = tls
    self.accept = accept
    super.init(loop: first, fd: fd)
    inode = file() ?? 0
  }

  func begin() {
    if !register(EPOLLIN.rawValue) { stop() }
  }

  func stop() {
    timer?.cancel()
    guard fd >= 0 else { return }
    // Another server may have replaced the file meanwhile.
    if case .unix(let path) = address, let now = file(), now == inode { unlink(path) }
    closeDescriptor()
  }

  override func loopWillStop() { stop() }

  private func file() -> ino_t? {
    guard case .unix(let path) = address, !path.hasPrefix("\0") else { return nil }
    var info = stat()
    return lstat(path, &info) == 0 ? info.st_ino : nil
  }

  override func ready(_ events: UInt32) {
    let flags = Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    for _ in 0..<64 {
      guard self.fd >= 0 else { return }
      let fd = linux_accept(self.fd, flags)
      if fd >= 0 {
        pause = 0
        hand(fd)
        continue
      }
      switch errno {
      case EMFILE, ENFILE, ENOBUFS, ENOMEM:
        backOff()
        return
      case EAGAIN: return
      default: continue  // the peer went away again, or its network did
      }
    }
  }

  /// Without descriptors the socket stays ready: looking again at once would burn the
  /// core that could close some.
  private func backOff() {
    pause = pause == 0 ? 10_000_000 : min(pause &* 2, 1_000_000_000)
    want(0)
    timer = loop.schedule(afterNanoseconds: pause) { [weak self] in
      self?.want(EPOLLIN.rawValue)
    }
  }

  private func hand(_ fd: Int32) {
    let target = loops[turn % loops.count]
    turn = (turn &+ 1) % loops.count
    if target === loop {
      take(fd, target)
    } else if !target.tryExecute({ self.take(fd, target) }) {
      close(fd)
    }
  }

  private func take(_ fd: Int32, _ target: EventLoop) {
    var session: TLSSession?
    if let tls {
      session = tls.session()
      guard session != nil else {
        close(fd)
        return
      }
    }
    guard
      let connection = try? HTTP2Connection.adopt(fd, isServer: true, on: target, limits, session)
    else { return }
    accept(connection)
  }
}
