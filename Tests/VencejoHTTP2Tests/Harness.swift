import Glibc
import Testing

@testable import VencejoHTTP2

enum Event: Sendable {
  case open
  case goAway(last: Int32, code: UInt32)
  case canOpen
  case connectionClosed(HTTP2Error.Kind?)
  case headers(Int32, [String: String], end: Bool)
  case data(Int32, Int)
  case ended(Int32)
  case drained(Int32)
  case closed(Int32, UInt32)
  case note(String, Int)
}

/// A stream's handler that writes down what it hears and does what its path says.
final class Recorder: StreamHandler {
  let log: EventLog<Event>
  var fields: [String: String] = [:]
  var body: [UInt8] = []
  /// Bytes are given back as they come.
  var consumes = true
  var left = 0
  var onHeaders: ((HTTP2Stream, Recorder, Bool) -> Void)?
  var onData: ((HTTP2Stream, Recorder, UnsafeRawBufferPointer) -> Void)?
  var onEnd: ((HTTP2Stream, Recorder) -> Void)?
  var onDrain: ((HTTP2Stream, Recorder) -> Void)?

  init(_ log: EventLog<Event>) { self.log = log }

  deinit { log.push(.note("freed", body.count)) }

  func stream(
    _ stream: HTTP2Stream, header name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer
  ) {
    fields[String(decoding: name, as: UTF8.self)] = String(decoding: value, as: UTF8.self)
  }

  func stream(_ stream: HTTP2Stream, headersEndWith endStream: Bool) {
    log.push(.headers(stream.id, fields, end: endStream))
    onHeaders?(stream, self, endStream)
  }

  func stream(_ stream: HTTP2Stream, data: UnsafeRawBufferPointer) {
    log.push(.data(stream.id, data.count))
    body.append(contentsOf: data)
    onData?(stream, self, data)
    if consumes { stream.consume(data.count) }
  }

  func streamDidEnd(_ stream: HTTP2Stream) {
    log.push(.ended(stream.id))
    onEnd?(stream, self)
  }

  func streamDidDrain(_ stream: HTTP2Stream) {
    log.push(.drained(stream.id))
    onDrain?(stream, self)
  }

  func stream(_ stream: HTTP2Stream, closedWith code: UInt32) {
    log.push(.closed(stream.id, code))
  }
}

final class ConnectionRecorder: ConnectionHandler {
  let log: EventLog<Event>
  init(_ log: EventLog<Event>) { self.log = log }

  func connectionDidOpen(_ connection: HTTP2Connection) { log.push(.open) }
  func connection(
    _ connection: HTTP2Connection, didReceiveGoAway lastStreamID: Int32, code: UInt32
  ) { log.push(.goAway(last: lastStreamID, code: code)) }
  func connectionCanOpenStreams(_ connection: HTTP2Connection) { log.push(.canOpen) }
  func connectionDidClose(_ connection: HTTP2Connection, error: HTTP2Error?) {
    log.push(.connectionClosed(error?.kind))
  }
}

let okHead = HeaderList([(":status", "200"), ("content-type", "application/grpc")])
let okTail = HeaderList([("grpc-status", "0")])

/// What the test server does on a path.
func behave(_ handler: Recorder, _ log: EventLog<Event>) {
  handler.onHeaders = { stream, handler, _ in
    if stream.headerListOverflowed {
      stream.send(
        trailers: HeaderList([(":status", "200"), ("grpc-status", "8")]))
      return
    }
    switch handler.fields[":path"] {
    case "/early":
      stream.send(headers: okHead)
      stream.send(data: [1, 2, 3])
      stream.send(trailers: okTail)
    case "/reset":
      stream.reset(HTTP2Code.cancel)
    case "/hold", "/greedy":
      handler.consumes = handler.fields[":path"] == "/hold"
    case "/flood":
      handler.left = 1 << 30
      stream.send(headers: okHead)
      refill(stream, handler)
    default: break
    }
  }
  handler.onDrain = { stream, handler in refill(stream, handler) }
  handler.onEnd = { stream, handler in
    switch handler.fields[":path"] {
    case "/echo":
      stream.send(headers: okHead)
      stream.send(data: handler.body)
      stream.send(trailers: okTail)
    case "/trailers-only":
      stream.send(trailers: HeaderList([(":status", "200"), ("grpc-status", "12")]))
    case "/large":
      stream.send(headers: okHead)
      stream.send(data: [UInt8](repeating: 7, count: 1 << 20))
      stream.send(trailers: okTail)
    case let path? where path.hasPrefix("/large-headers/"):
      let size = Int(path.dropFirst(15)) ?? 0
      stream.send(
        trailers: HeaderList(base: okHead, adding: [("x", String(repeating: "{", count: size))]))
    default: break
    }
  }
}

/// Keeps the queue above its mark until a gibibyte is through.
private func refill(_ stream: HTTP2Stream, _ handler: Recorder) {
  while handler.left > 0 && stream.queuedBytes <= 64 << 10 {
    stream.send(data: [UInt8](repeating: 9, count: 32 << 10))
    handler.left -= 32 << 10
    handler.log.push(.note("written", (1 << 30) - handler.left))
  }
}

/// Ours on one end of a socket pair, bytes by hand on the other.
final class Harness {
  let loop: EventLoop
  let log = EventLog<Event>()
  let peer: RawPeer
  nonisolated(unsafe) var connection: HTTP2Connection!  // set once, before the test runs

  init(isServer: Bool = true, _ change: (inout ConnectionConfiguration) -> Void = { _ in }) throws {
    var configuration = ConnectionConfiguration()
    change(&configuration)
    var ends: [Int32] = [0, 0]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
    peer = RawPeer(fd: ends[1])
    loop = try EventLoop(name: "test")
    let mine = ends[0]
    let settings = configuration
    connection = try onLoop { [loop, log] in
      let made = try HTTP2Connection.adopt(
        descriptor: mine, isServer: isServer, on: loop, configuration: settings)
      made.handler = ConnectionRecorder(log)
      if isServer {
        made.acceptStream = { _ in
          let handler = Recorder(log)
          behave(handler, log)
          return handler
        }
      }
      return made
    }
  }

  deinit { loop.shutdown() }

  /// Runs `body` on the loop and waits for it.
  func onLoop<R: Sendable>(_ body: @escaping @Sendable () throws -> R) throws -> R {
    let result = EventLog<Result<R, any Error>>()
    loop.execute { result.push(Result { try body() }) }
    return try #require(result.wait { $0 }).get()
  }

  /// Opens a stream from our side (client).
  func open(_ path: String, endStream: Bool = true) throws -> HTTP2Stream {
    let (connection, log) = (connection!, log)
    return try onLoop {
      try connection.open(
        handler: Recorder(log),
        headers: HeaderList([
          (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x"),
        ]), endStream: endStream)
    }
  }

  func closedCode(_ id: Int32) -> UInt32? {
    log.wait {
      if case .closed(id, let code) = $0 { return code }
      return nil
    }
  }

  /// The error's kind with which the connection closed.
  func closedKind() -> HTTP2Error.Kind?? {
    log.wait { event -> HTTP2Error.Kind?? in
      if case .connectionClosed(let kind) = event { return .some(kind) }
      return nil
    }
  }

  /// The server answers a call: it lives.
  static func answers(_ peer: RawPeer, _ stream: Int32) -> Bool {
    peer.open(stream, "/echo")
    peer.data(stream, [42], endStream: true)
    return peer.next(Frame.data, stream: stream)?.payload == [42]
  }
}
