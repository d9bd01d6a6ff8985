import Synchronization
import VencejoHTTP2

@testable import VencejoRPC

/// A server that does what a test says, frame by frame: for what a real one would not do.
final class ScriptedServer: Sendable {
  /// One request, on its connection's loop.
  final class Request: StreamHandler {
    let number: Int
    var fields: [String: String] = [:]
    var body: [UInt8] = []
    /// The connection's number, from 0.
    let connection: Int
    private let server: ScriptedServer
    fileprivate(set) var closed = false

    init(_ server: ScriptedServer, _ number: Int, _ connection: Int) {
      self.server = server
      self.number = number
      self.connection = connection
    }

    func stream(
      _ stream: HTTP2Stream, header name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer
    ) {
      fields[String(decoding: name, as: UTF8.self)] = String(decoding: value, as: UTF8.self)
    }

    func stream(_ stream: HTTP2Stream, headersEndWith endStream: Bool) {
      server.log.withLock { $0.requests.append(fields) }
      server.onHeaders(stream, self)
    }

    func stream(_ stream: HTTP2Stream, data: UnsafeRawBufferPointer) {
      body.append(contentsOf: data)
      stream.consume(data.count)
    }

    func streamDidEnd(_ stream: HTTP2Stream) {
      server.log.withLock { $0.bodies.append(body) }
      server.onEnd(stream, self)
    }

    func streamDidDrain(_ stream: HTTP2Stream) {}

    func stream(_ stream: HTTP2Stream, closedWith code: UInt32) {
      closed = true
      server.log.withLock { $0.resets.append(code) }
    }
  }

  private final class Connection: ConnectionHandler {
    func connectionDidClose(_ connection: HTTP2Connection, error: HTTP2Error?) {}
  }

  struct Log {
    var requests: [[String: String]] = []
    var bodies: [[UInt8]] = []
    var resets: [UInt32] = []
    var connections = 0
  }

  let log = Mutex(Log())
  private let loop: EventLoop
  private let listener = Mutex<Listener?>(nil)
  /// `@unchecked` by the compiler's leave: both are set once, before anything comes.
  private let onHeaders: @Sendable (HTTP2Stream, Request) -> Void
  private let onEnd: @Sendable (HTTP2Stream, Request) -> Void

  init(
    _ address: String = "127.0.0.1:0", configuration: ConnectionConfiguration = .init(),
    onConnection: @escaping @Sendable (HTTP2Connection, Int) -> Void = { _, _ in },
    onHeaders: @escaping @Sendable (HTTP2Stream, Request) -> Void = { _, _ in },
    onEnd: @escaping @Sendable (HTTP2Stream, Request) -> Void = { _, _ in }
  ) throws {
    self.onHeaders = onHeaders
    self.onEnd = onEnd
    loop = try EventLoop(name: "script")
    let made = try Listener(
      address: SocketAddress(parsing: address), loops: [loop], configuration: configuration
    ) { [weak self] connection in
      guard let self else { return }
      let number = self.log.withLock { log in
        defer { log.connections += 1 }
        return log.connections
      }
      connection.handler = Connection()
      connection.acceptStream = { _ in
        Request(self, self.log.withLock { $0.requests.count }, number)
      }
      onConnection(connection, number)
    }
    listener.withLock { $0 = made }
  }

  var address: String { listener.withLock { $0.map { "\($0.localAddress)" } ?? "" } }

  func stop() {
    listener.withLock { $0?.close() }
    loop.shutdown()
  }

  static let head = HeaderList([(":status", "200"), ("content-type", "application/grpc")])

  /// A message and a status.
  static func answer(_ stream: HTTP2Stream, _ message: [UInt8] = [], status: Int = 0) {
    stream.send(headers: head)
    stream.send(data: EncodedMessage(serialized: message).frame)
    stream.send(trailers: HeaderList([("grpc-status", "\(status)")]))
  }

  /// A status alone.
  static func refuse(_ stream: HTTP2Stream, _ status: Int, _ more: [(String, String)] = []) {
    stream.send(
      trailers: HeaderList(base: head, adding: [("grpc-status", "\(status)")] + more))
  }
}
