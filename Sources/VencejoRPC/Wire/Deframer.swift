import VencejoCompression

/// Cuts the bytes of DATA frames into gRPC's length-prefixed messages (gRPC over HTTP2,
/// "Requests", Length-Prefixed-Message).
///
/// Pure: bytes in, messages out. Nothing is reserved on the strength of a claimed length
/// beyond what a peer has to send anyway to be believed.
struct Deframer {
  /// Why the bytes are no messages.
  enum Failure: Error, Equatable {
    /// The flag says compressed, but nobody said how.
    case compressed
    /// Compressed bytes that are none.
    case malformed
    /// Decompressed, longer than the limit.
    case inflatesTooLong
    /// The flag is neither 0 nor 1.
    case badFlag(UInt8)
    /// Longer than the limit, in bytes.
    case tooLong(UInt32)
  }

  static let prefixLength = 5
  private static let firstReservation = 64 * 1024

  // In few bytes: each call has one.
  private let longest: UInt32
  private var bodyLength: UInt32 = 0
  private var body: [UInt8] = []
  private var flag: UInt8 = 0
  private var prefixFilled: UInt8 = 0
  /// Whether the message returned last, or the one that has begun, travels compressed.
  private(set) var isCompressed = false
  /// How compressed messages are compressed: the peer's `grpc-encoding`.
  var compression: Compression?

  /// `limit`: the bytes that a message may have; four times 2^30 are as many as there can be.
  init(limit: Int) { longest = UInt32(clamping: limit) }

  var limit: Int { Int(longest) }

  /// Whether a message has begun and not ended.
  var isInside: Bool { prefixFilled > 0 }

  /// Bytes of the message that has begun.
  var bufferedBytes: Int { Int(prefixFilled) + body.count }

  /// Consumes bytes up to the end of the next message and returns it, or nil when more
  /// bytes are needed. `bytes` is moved past what was consumed.
  mutating func next(_ bytes: inout UnsafeRawBufferPointer) throws(Failure) -> [UInt8]? {
    while prefixFilled < UInt8(Self.prefixLength) {
      guard let byte = bytes.first else { return nil }
      bytes = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
      if prefixFilled == 0 {
        flag = byte
        bodyLength = 0
      } else {
        bodyLength = bodyLength << 8 | UInt32(byte)
      }
      prefixFilled += 1
      if prefixFilled == UInt8(Self.prefixLength) { try checkPrefix() }
    }
    let wanted = Int(bodyLength) - body.count
    if body.isEmpty, bytes.count >= wanted {
      let message = [UInt8](UnsafeRawBufferPointer(rebasing: bytes.prefix(wanted)))
      bytes = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(wanted))
      prefixFilled = 0
      return try decompressed(message)
    }
    let taken = min(wanted, bytes.count)
    if body.isEmpty { body.reserveCapacity(min(Int(bodyLength), Self.firstReservation)) }
    body.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes.prefix(taken)))
    bytes = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(taken))
    guard body.count == Int(bodyLength) else { return nil }
    let message = body
    body = []
    prefixFilled = 0
    return try decompressed(message)
  }

  private func decompressed(_ message: [UInt8]) throws(Failure) -> [UInt8] {
    guard isCompressed, let compression else { return message }
    do {
      return try compression.decompress(message, limit: limit)
    } catch .tooLong {
      throw .inflatesTooLong
    } catch {
      throw .malformed
    }
  }

  private mutating func checkPrefix() throws(Failure) {
    if flag > 1 { throw .badFlag(flag) }
    isCompressed = flag == 1
    if isCompressed, compression == nil { throw .compressed }
    if bodyLength > longest { throw .tooLong(bodyLength) }
  }
}

extension Deframer.Failure {
  /// The status that the specification names for it. `encoding` is the peer's
  /// `grpc-encoding`. An encoding that was never offered is the client's wish that a server
  /// cannot grant, or a server's fault (compression.md).
  func status(limit: Int, encoding: String?, inResponse: Bool) -> RPCError {
    switch self {
    case .compressed:
      if let encoding, encoding != "identity" {
        return RPCError(
          inResponse ? .internalError : .unimplemented,
          "the message encoding '\(encoding)' is not supported")
      }
      return RPCError(.internalError, "a compressed message without a message encoding")
    case .malformed:
      return RPCError(.internalError, "a compressed message that is malformed")
    case .inflatesTooLong:
      return RPCError(
        .resourceExhausted, "a compressed message that stands for more than \(limit) bytes")
    case .badFlag(let flag):
      return RPCError(.internalError, "a message with the unknown flag \(flag)")
    case .tooLong(let length):
      return RPCError(
        .resourceExhausted, "a message of \(length) bytes where \(limit) are allowed")
    }
  }
}

extension Compression {
  /// What we can read, as a value of `grpc-accept-encoding`.
  static let accepted = (["identity"] + allCases.map(\.rawValue)).joined(separator: ",")
}

extension [UInt8] {
  /// A sealed frame's message compressed, where that makes it shorter.
  func compressedFrame(_ compression: Compression) -> [UInt8] {
    let message = Array(dropFirst(Deframer.prefixLength))
    guard let packed = try? compression.compress(message), packed.count < message.count else {
      return self
    }
    var frame = [UInt8](repeating: 0, count: Deframer.prefixLength) + packed
    frame.sealFrame()
    frame[0] = 1
    return frame
  }

  /// Fills the five bytes reserved in front of a message: uncompressed, and its length.
  mutating func sealFrame() {
    let length = UInt32(truncatingIfNeeded: count - Deframer.prefixLength)
    self[0] = 0
    self[1] = UInt8(truncatingIfNeeded: length >> 24)
    self[2] = UInt8(truncatingIfNeeded: length >> 16)
    self[3] = UInt8(truncatingIfNeeded: length >> 8)
    self[4] = UInt8(truncatingIfNeeded: length)
  }
}
