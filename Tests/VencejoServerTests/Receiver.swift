import Glibc
import Synchronization
import Testing

/// An HTTP server that keeps what is posted to it and answers as told: 200 unless `answers` has
/// something else, which is used up in order.
final class Receiver: Sendable {
  struct Request: Sendable {
    let path: String
    let headers: [String: String]
    let bytes: [UInt8]

    var body: String { String(decoding: bytes, as: UTF8.self) }
  }

  let port: UInt16
  private let descriptor: CInt
  let answers = Mutex<[Int]>([])
  private let stream: AsyncStream<Request>
  private let thread: Mutex<pthread_t>

  init(answers: [Int] = []) throws {
    let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    try withUnsafeMutablePointer(to: &address) {
      try $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        try #require(bind(descriptor, $0, length) == 0 && listen(descriptor, 64) == 0)
        getsockname(descriptor, $0, &length)
      }
    }
    self.descriptor = descriptor
    port = UInt16(bigEndian: address.sin_port)
    self.answers.withLock { $0 = answers }
    let (stream, continuation) = AsyncStream.makeStream(
      of: Request.self, bufferingPolicy: .unbounded)
    self.stream = stream
    thread = Mutex(pthread_t())
    start { [weak self] in
      while true {
        let client = accept(descriptor, nil, nil)
        guard client >= 0 else { break }
        while let request = Self.read(client) {
          let status = self?.answers.withLock { $0.isEmpty ? 200 : $0.removeFirst() } ?? 200
          continuation.yield(request)
          var answer = Array(
            "HTTP/1.1 \(status) X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".utf8)
          _ = send(client, &answer, answer.count, CInt(MSG_NOSIGNAL))
          break
        }
        Glibc.close(client)
      }
      continuation.finish()
    }
  }

  var uri: String { "http://127.0.0.1:\(port)/hook" }

  /// Those that come, in order; one reader.
  func requests() -> AsyncStream<Request>.AsyncIterator { stream.makeAsyncIterator() }

  func close() {
    shutdown(descriptor, CInt(SHUT_RDWR))
    thread.withLock { _ = pthread_join($0, nil) }
    Glibc.close(descriptor)
  }

  private static func read(_ client: CInt) -> Request? {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = recv(client, &buffer, buffer.count, 0)
      guard count > 0 else { return nil }
      bytes += buffer[..<count]
      let text = String(decoding: bytes, as: UTF8.self)
      let parts = text.components(of: "\r\n\r\n")
      guard parts.count == 2 else { continue }
      let lines = parts[0].components(of: "\r\n", all: true)
      var headers: [String: String] = [:]
      for line in lines.dropFirst() {
        let pair = line.components(of: ": ")
        if pair.count == 2 { headers[pair[0].lowercased()] = pair[1] }
      }
      let head = parts[0].utf8.count + 4
      guard bytes.count - head >= Int(headers["content-length"] ?? "0") ?? 0 else { continue }
      let words = lines[0].split(separator: " ")
      return Request(
        path: words.count > 1 ? String(words[1]) : "", headers: headers,
        bytes: Array(bytes[head...]))
    }
  }

  private func start(_ body: @escaping @Sendable () -> Void) {
    final class Start {
      let body: @Sendable () -> Void
      init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    thread.withLock { thread in
      _ = pthread_create(
        &thread, nil,
        { argument in
          guard let argument else { return nil }
          Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body()
          return nil
        }, Unmanaged.passRetained(Start(body)).toOpaque())
    }
  }
}

extension String {
  /// The parts before and behind the first `separator`, or between all of them.
  func components(of separator: String, all: Bool = false) -> [String] {
    var parts: [String] = []
    var start = utf8.startIndex
    var at = start
    let wanted = Array(separator.utf8)
    while at < utf8.endIndex {
      if utf8[at...].starts(with: wanted), all || parts.isEmpty {
        parts.append(String(self[start..<at]))
        at = utf8.index(at, offsetBy: wanted.count)
        start = at
      } else {
        at = utf8.index(after: at)
      }
    }
    parts.append(String(self[start...]))
    return parts
  }
}
