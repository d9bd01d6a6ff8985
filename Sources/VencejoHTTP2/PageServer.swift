import CLinux
import Glibc

/// Answers GET and HEAD over HTTP/1.1 with small pages: for what scrapes and probes a server
/// and speaks no gRPC.
///
/// One answer a connection, then it closes. Requests of more than 8 KiB, methods that would
/// change something, and whoever is slower than ten seconds are turned away; beyond 64
/// connections at a time the oldest one goes.
public final class PageServer: Sendable {
  /// What is answered at a path.
  public struct Page: Sendable {
    public var contentType: String
    public var body: String

    public init(contentType: String = "text/plain; charset=utf-8", body: String) {
      self.contentType = contentType
      self.body = body
    }
  }

  /// The address it listens on, with the real port where 0 was asked for.
  public let localAddress: SocketAddress
  private let source: PageListener

  /// Listens on a loop. `page` is asked for each request, on the loop, with the path and
  /// without its query; nil is answered 404. Throws as `Listener` does.
  public init(
    address: SocketAddress, loop: EventLoop, page: @escaping @Sendable (String) -> Page?
  ) throws(HTTP2Error) {
    let fd = try Listener.bind(address)
    localAddress = address.isUnix ? address : SocketAddress.local(of: fd) ?? address
    source = PageListener(loop: loop, fd: fd, address: localAddress, page: page)
    let source = source
    guard loop.tryExecute({ source.begin() }) else {
      Glibc.close(fd)
      throw HTTP2Error(.loopUnavailable, "the event loop has ended")
    }
  }

  /// Stops listening and closes what is open.
  public func close() {
    let source = source
    source.loop.execute { source.stop() }
  }
}

/// The listening socket.
///
/// `@unchecked Sendable`: after `init` only the loop's thread touches it.
private final class PageListener: LoopSource, @unchecked Sendable {
  private static let maxConnections = 64
  private let address: SocketAddress
  private let page: @Sendable (String) -> PageServer.Page?
  private var connections: [PageConnection] = []
  private var timer: LoopTimer?

  init(
    loop: EventLoop, fd: Int32, address: SocketAddress,
    page: @escaping @Sendable (String) -> PageServer.Page?
  ) {
    self.address = address
    self.page = page
    super.init(loop: loop, fd: fd)
  }

  func begin() {
    if !register(EPOLLIN.rawValue) { stop() }
  }

  func stop() {
    guard fd >= 0 else { return }
    timer?.cancel()
    if case .unix(let path) = address { unlink(path) }
    for connection in connections { connection.end() }
    connections = []
    closeDescriptor()
  }

  override func loopWillStop() { stop() }

  override func ready(_ events: UInt32) {
    let flags = Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    for _ in 0..<16 {
      guard self.fd >= 0 else { return }
      let fd = linux_accept(self.fd, flags)
      guard fd >= 0 else {
        if errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM { pause() }
        return
      }
      connections.removeAll { $0.fd < 0 }
      if connections.count >= Self.maxConnections { connections.removeFirst().end() }
      let connection = PageConnection(loop: loop, fd: fd, page: page)
      if connection.begin() { connections.append(connection) }
    }
  }

  /// Without descriptors the socket stays ready: looking again at once would burn a core.
  private func pause() {
    want(0)
    timer = loop.schedule(after: .seconds(1)) { [weak self] in self?.want(EPOLLIN.rawValue) }
  }
}

/// One request and its answer.
private final class PageConnection: LoopSource {
  private static let maxRequest = 8 << 10
  private let page: @Sendable (String) -> PageServer.Page?
  private var request: [UInt8] = []
  private var answer: [UInt8] = []
  private var written = 0
  private var timer: LoopTimer?

  init(loop: EventLoop, fd: Int32, page: @escaping @Sendable (String) -> PageServer.Page?) {
    self.page = page
    super.init(loop: loop, fd: fd)
  }

  func begin() -> Bool {
    guard register(EPOLLIN.rawValue) else {
      closeDescriptor()
      return false
    }
    timer = loop.schedule(after: .seconds(10)) { [weak self] in self?.end() }
    return true
  }

  func end() {
    timer?.cancel()
    timer = nil
    closeDescriptor()
  }

  override func loopWillStop() { end() }

  override func ready(_ events: UInt32) {
    if answer.isEmpty { read() }
    if !answer.isEmpty { write() }
  }

  private func read() {
    let count = recv(fd, loop.readBuffer, Self.maxRequest, 0)
    guard count > 0 else {
      if count == 0 || (errno != EAGAIN && errno != EINTR) { end() }
      return
    }
    request.append(contentsOf: UnsafeRawBufferPointer(start: loop.readBuffer, count: count))
    if let head = PageRequest(request) {
      answer = respond(to: head)
    } else if request.count >= Self.maxRequest {
      answer = Self.answer(431, "Request Header Fields Too Large", .init(body: "too large\n"))
    }
  }

  private func respond(to head: PageRequest) -> [UInt8] {
    switch head.kind {
    case .malformed: return Self.answer(400, "Bad Request", .init(body: "no HTTP/1 request\n"))
    case .other:
      return Self.answer(
        405, "Method Not Allowed", .init(body: "only GET and HEAD\n"), more: "Allow: GET, HEAD\r\n")
    case .get, .head:
      guard let page = page(head.path) else {
        return Self.answer(404, "Not Found", .init(body: "no such page\n"), bodyless: head.isHead)
      }
      return Self.answer(200, "OK", page, bodyless: head.isHead)
    }
  }

  private static func answer(
    _ status: Int, _ reason: String, _ page: PageServer.Page, more: String = "",
    bodyless: Bool = false
  ) -> [UInt8] {
    let body = Array(page.body.utf8)
    let head =
      "HTTP/1.1 \(status) \(reason)\r\nContent-Type: \(page.contentType)\r\n"
      + "Content-Length: \(body.count)\r\nCache-Control: no-store\r\n\(more)"
      + "Connection: close\r\n\r\n"
    return Array(head.utf8) + (bodyless ? [] : body)
  }

  private func write() {
    while written < answer.count {
      let sent = answer.withUnsafeBytes { bytes in
        Glibc.send(
          fd, bytes.baseAddress.map { $0 + written }, bytes.count - written, Int32(MSG_NOSIGNAL))
      }
      if sent > 0 {
        written += sent
      } else if sent < 0, errno == EINTR {
        continue
      } else if sent < 0, errno == EAGAIN {
        want(EPOLLOUT.rawValue)
        return
      } else {
        return end()
      }
    }
    // What the peer still sends would turn the close into a reset that eats the answer.
    shutdown(fd, Int32(SHUT_WR))
    for _ in 0..<16 where recv(fd, loop.readBuffer, EventLoop.readSize, 0) <= 0 { break }
    end()
  }
}

/// The request line of a whole head (RFC 9112, section 3). Pure.
struct PageRequest {
  enum Kind {
    case get, head, other, malformed
  }

  let kind: Kind
  /// Without the query.
  let path: String

  var isHead: Bool { if case .head = kind { true } else { false } }

  /// Nil while the head has not ended.
  init?(_ bytes: [UInt8]) {
    let lineFeed = UInt8(ascii: "\n")
    // An empty line ends the head; a bare LF is a line's end too (section 2.2).
    let text = bytes.filter { $0 != UInt8(ascii: "\r") }
    guard zip(text, text.dropFirst()).contains(where: { $0 == lineFeed && $1 == lineFeed }) else {
      return nil
    }
    let line = String(decoding: text.prefix { $0 != lineFeed }, as: UTF8.self)
    let parts = line.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 3, parts[2].hasPrefix("HTTP/1."), parts[1].hasPrefix("/") else {
      kind = .malformed
      path = ""
      return
    }
    path = String(parts[1].prefix { $0 != "?" })
    switch parts[0] {
    case "GET": kind = .get
    case "HEAD": kind = .head
    default: kind = .other
    }
  }
}
