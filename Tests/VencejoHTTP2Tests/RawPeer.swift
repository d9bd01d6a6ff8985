import CNGHTTP2
import Glibc

/// A frame as it travels (RFC 9113, section 4.1).
struct Frame: Equatable {
  var type: UInt8
  var flags: UInt8
  var stream: Int32
  var payload: [UInt8]

  static let data: UInt8 = 0
  static let headers: UInt8 = 1
  static let priority: UInt8 = 2
  static let reset: UInt8 = 3
  static let settings: UInt8 = 4
  static let ping: UInt8 = 6
  static let goAway: UInt8 = 7
  static let windowUpdate: UInt8 = 8
  static let continuation: UInt8 = 9

  var endsStream: Bool { flags & 1 != 0 }
  func word(_ at: Int) -> UInt32 {
    payload.count < at + 4 ? 0 : payload[at..<at + 4].reduce(0) { $0 << 8 | UInt32($1) }
  }
}

func bigEndian(_ value: UInt32) -> [UInt8] {
  [UInt8(value >> 24), UInt8(value >> 16 & 255), UInt8(value >> 8 & 255), UInt8(value & 255)]
}

/// The other end of a connection, written by hand: it says what it is told to, right
/// or wrong, and shows what comes back. Blocking, with five seconds of patience.
final class RawPeer {
  let fd: Int32
  private var buffer: [UInt8] = []
  private var inflater: OpaquePointer?
  private(set) var sawEnd = false
  /// The end was no orderly one: what was on its way may be lost.
  private(set) var wasReset = false
  /// Frames read on the way to another.
  private(set) var seen: [Frame] = []

  init(fd: Int32) {
    self.fd = fd
    var patience = timeval(tv_sec: 5, tv_usec: 0)
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    nghttp2_hd_inflate_new(&inflater)
  }

  deinit {
    nghttp2_hd_inflate_del(inflater)
    close(fd)
  }

  // MARK: Out

  @discardableResult
  func send(_ bytes: [UInt8]) -> Bool {
    var sent = 0
    while sent < bytes.count {
      let n = bytes.withUnsafeBytes { raw in
        Glibc.send(fd, raw.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
      }
      if n <= 0 { return false }
      sent += n
    }
    return true
  }

  static func encode(_ type: UInt8, _ flags: UInt8, _ stream: Int32, _ payload: [UInt8]) -> [UInt8]
  {
    Array(bigEndian(UInt32(payload.count)).dropFirst()) + [type, flags]
      + bigEndian(UInt32(bitPattern: stream)) + payload
  }

  @discardableResult
  func frame(_ type: UInt8, _ flags: UInt8 = 0, _ stream: Int32 = 0, _ payload: [UInt8] = [])
    -> Bool
  {
    send(Self.encode(type, flags, stream, payload))
  }

  static let magic = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

  /// Reads the magic with which a client begins; false when it is another.
  @discardableResult
  func skipMagic() -> Bool {
    var got = [UInt8](repeating: 0, count: Self.magic.count)
    return recv(fd, &got, got.count, Int32(MSG_WAITALL)) == got.count && got == Self.magic
  }

  /// The client's preface with SETTINGS of (id, value).
  func preface(_ settings: [(UInt16, UInt32)] = []) {
    send(Self.magic)
    self.settings(settings)
  }

  func settings(_ settings: [(UInt16, UInt32)] = []) {
    frame(
      Frame.settings, 0, 0,
      settings.flatMap { [UInt8($0.0 >> 8), UInt8($0.0 & 255)] + bigEndian($0.1) })
  }

  /// Literals without indexing (RFC 7541, section 6.2.2).
  static func block(_ fields: [(String, String)]) -> [UInt8] {
    fields.flatMap { [0x00] + text($0.0) + text($0.1) }
  }

  private static func text(_ s: String) -> [UInt8] {
    let count = s.utf8.count
    guard count >= 127 else { return [UInt8(count)] + Array(s.utf8) }
    var rest = count - 127
    var out: [UInt8] = [127]
    while rest >= 128 {
      out.append(UInt8(rest & 127 | 128))
      rest >>= 7
    }
    return out + [UInt8(rest)] + Array(s.utf8)
  }

  static func request(_ path: String, _ more: [(String, String)] = []) -> [UInt8] {
    block(
      [
        (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x"),
      ] + more)
  }

  func open(_ stream: Int32, _ path: String, endStream: Bool = false, more: [(String, String)] = [])
  {
    frame(Frame.headers, endStream ? 5 : 4, stream, Self.request(path, more))
  }

  func data(_ stream: Int32, _ bytes: [UInt8], endStream: Bool = false) {
    frame(Frame.data, endStream ? 1 : 0, stream, bytes)
  }

  // MARK: In

  /// The next frame; nil at the end of the connection or of patience.
  func next() -> Frame? {
    while true {
      if buffer.count >= 9 {
        let length = Int(buffer[0]) << 16 | Int(buffer[1]) << 8 | Int(buffer[2])
        if buffer.count >= 9 + length {
          let id = buffer[5..<9].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
          let frame = Frame(
            type: buffer[3], flags: buffer[4], stream: Int32(bitPattern: id),
            payload: Array(buffer[9..<9 + length]))
          buffer.removeFirst(9 + length)
          return frame
        }
      }
      guard fill() else { return nil }
    }
  }

  private func fill() -> Bool {
    var chunk = [UInt8](repeating: 0, count: 65_536)
    let n = recv(fd, &chunk, chunk.count, 0)
    if n > 0 {
      buffer += chunk[..<n]
      return true
    }
    wasReset = n < 0 && errno == ECONNRESET
    sawEnd = n == 0 || wasReset
    return false
  }

  /// The next frame of a type, others going to `seen`.
  func next(_ type: UInt8, stream: Int32? = nil, ack: Bool = false) -> Frame? {
    while let frame = next() {
      let isAck = frame.flags & 1 != 0 && (frame.type == Frame.settings || frame.type == Frame.ping)
      if frame.type == type && isAck == ack && stream.map({ $0 == frame.stream }) ?? true {
        return frame
      }
      seen.append(frame)
    }
    return nil
  }

  /// Reads to the end of the connection; false when it does not come.
  func readToEnd() -> Bool {
    while let frame = next() { seen.append(frame) }
    return sawEnd
  }

  /// The GOAWAY's code before the end of the connection; nil when there was none.
  func goAwayAtEnd() -> UInt32? {
    guard readToEnd() else { return nil }
    return seen.last { $0.type == Frame.goAway }?.word(4)
  }

  func fields(_ frame: Frame) -> [String: String] {
    var out: [String: String] = [:]
    var payload = frame.payload
    payload.withUnsafeMutableBufferPointer { block in
      var input = block.baseAddress
      var left = block.count
      while true {
        var field = nghttp2_nv()
        var flags: Int32 = 0
        let n = nghttp2_hd_inflate_hd2(inflater, &field, &flags, input, left, 1)
        if n < 0 { break }
        if let at = input { input = at + n }
        left -= n
        if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
          let name = String(
            decoding: UnsafeBufferPointer(start: field.name, count: field.namelen), as: UTF8.self)
          out[name] = String(
            decoding: UnsafeBufferPointer(start: field.value, count: field.valuelen), as: UTF8.self)
        }
        if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 {
          nghttp2_hd_inflate_end_headers(inflater)
          break
        }
        if n == 0 { break }
      }
    }
    return out
  }
}
