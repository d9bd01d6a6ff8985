/// Looks at the heads of a client's frames for what nghttp2 lets pass the way we use it: it
/// remembers no closed streams, which saves their memory, and skips PRIORITY frames, whose
/// scheme RFC 9113 gave up.
///
/// Pure: bytes in, a verdict out. It keeps its place from one read to the next.
struct FrameWatch {
  /// A frame that ends the connection: where it begins in the bytes looked at, and the code.
  struct Violation: Equatable {
    var offset: Int
    var code: UInt32
    var reason: String
  }

  private static let headLength = 9
  /// A PRIORITY frame and its payload.
  private static let priorityLength = 14
  private static let prefaceLength = 24

  /// Bytes that need not be looked at: the preface, then payloads.
  private var skip = FrameWatch.prefaceLength
  /// A head, and a PRIORITY frame's payload, that came in pieces.
  private var kept: [UInt8] = []
  /// The streams that the peer itself closed last, by RST_STREAM or by ending its side of a
  /// stream that we had ended. Streams that we reset are not here: frames that crossed the
  /// reset on the wire are no fault.
  private var closed = InlineArray<16, Int32>(repeating: 0)
  private var next = 0

  mutating func noteClosed(_ id: Int32) {
    closed[next] = id
    next = (next + 1) & 15
  }

  /// Without a branch for each: this is asked for every frame.
  private func wasClosed(_ id: Int32) -> Bool {
    var matches = 0
    for index in closed.indices { matches &+= closed[index] == id ? 1 : 0 }
    return matches != 0 && id != 0
  }

  /// Looks at bytes as they came.
  mutating func look(at bytes: UnsafeRawBufferPointer) -> Violation? {
    var offset = 0
    while offset < bytes.count {
      let left = bytes.count - offset
      if skip >= left {
        skip -= left
        return nil
      }
      offset += skip
      skip = 0
      let whole = bytes.count - offset
      if kept.isEmpty, whole >= Self.headLength,
        bytes[offset + 3] != 2 || whole >= Self.priorityLength
      {
        let frame = UnsafeRawBufferPointer(rebasing: bytes[offset...])
        if let (code, reason) = check(frame) {
          return Violation(offset: offset, code: code, reason: reason)
        }
        skip = Self.headLength + Self.length(frame)
      } else {
        let begin = offset - kept.count
        kept.append(bytes[offset])
        offset += 1
        guard kept.count >= Self.headLength,
          kept.count == Self.priorityLength
            || !(kept[3] == 2 && kept.withUnsafeBytes(Self.length) == 5)
        else { continue }
        let (found, length) = kept.withUnsafeBytes { (self.peek($0), Self.length($0)) }
        if kept[3] == 3 { noteClosed(kept.withUnsafeBytes(Self.stream)) }
        skip = max(0, length + Self.headLength - kept.count)
        kept.removeAll(keepingCapacity: false)
        if let (code, reason) = found {
          return Violation(offset: max(0, begin), code: code, reason: reason)
        }
      }
    }
    return nil
  }

  private static func length(_ head: UnsafeRawBufferPointer) -> Int {
    Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
  }

  private static func stream(_ head: UnsafeRawBufferPointer) -> Int32 { number(head, at: 5) }

  /// 31 bits, as stream identifiers are.
  private static func number(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> Int32 {
    let number = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    return Int32(truncatingIfNeeded: number & 0x7FFF_FFFF)
  }

  private mutating func check(_ frame: UnsafeRawBufferPointer) -> (UInt32, String)? {
    if frame[3] == 3 { noteClosed(Self.stream(frame)) }
    return peek(frame)
  }

  private func peek(_ frame: UnsafeRawBufferPointer) -> (UInt32, String)? {
    switch frame[3] {
    case 0, 1:  // DATA, HEADERS (RFC 9113, section 5.1, "closed")
      let id = Self.stream(frame)
      guard wasClosed(id) else { return nil }
      return (HTTP2Code.streamClosed, "a frame on stream \(id), which the peer had closed")
    case 2:  // PRIORITY (section 6.3; RFC 7540, section 5.3.1)
      let id = Self.stream(frame)
      guard Self.length(frame) == 5, frame.count >= Self.priorityLength else { return nil }
      if id == 0 { return (HTTP2Code.protocolError, "PRIORITY on stream 0") }
      guard Self.number(frame, at: Self.headLength) == id else { return nil }
      return (HTTP2Code.protocolError, "stream \(id) depends on itself")
    default:
      return nil
    }
  }
}
