import CZlib

/// Why bytes could not be decompressed.
public enum CompressionError: Error, Hashable, Sendable {
  /// They are not of the format, are cut short, or something follows them.
  case malformed
  /// They stand for more than the limit, in bytes.
  case tooLong(limit: Int)
  /// The library has no memory left.
  case outOfMemory
}

/// The formats of HTTP's content codings (RFC 9110, section 8.4.1).
public enum Compression: String, Sendable, Hashable, CaseIterable {
  /// RFC 1952.
  case gzip
  /// RFC 1950, the zlib format, as HTTP means by the name.
  case deflate

  /// zlib's windowBits: 15 for its own format, 16 more for gzip's.
  private var windowBits: Int32 {
    switch self {
    case .gzip: 15 + 16
    case .deflate: 15
    }
  }

  /// Compresses bytes in one go. Throws `.outOfMemory` only.
  public func compress(_ bytes: [UInt8]) throws(CompressionError) -> [UInt8] {
    var stream = z_stream()
    guard
      deflateInit2_(
        &stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, windowBits, 8, Z_DEFAULT_STRATEGY,
        ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
    else { throw .outOfMemory }
    defer { deflateEnd(&stream) }
    var input = bytes
    let bound = Int(deflateBound(&stream, UInt(bytes.count)))
    let output = input.withUnsafeMutableBufferPointer { input -> [UInt8]? in
      [UInt8](unsafeUninitializedCapacity: bound) { output, count in
        stream.next_in = input.baseAddress
        stream.avail_in = UInt32(clamping: input.count)
        stream.next_out = output.baseAddress
        stream.avail_out = UInt32(clamping: output.count)
        // The bound holds for one call that finishes.
        count = CZlib.deflate(&stream, Z_FINISH) == Z_STREAM_END ? Int(stream.total_out) : 0
      }
    }
    guard let output, !output.isEmpty else { throw .outOfMemory }
    return output
  }

  /// Decompresses bytes that stand for `limit` bytes at most. Memory grows with what comes
  /// out, never with what the input claims.
  public func decompress(_ bytes: [UInt8], limit: Int) throws(CompressionError) -> [UInt8] {
    var stream = z_stream()
    guard
      inflateInit2_(&stream, windowBits, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
    else { throw .outOfMemory }
    defer { inflateEnd(&stream) }
    var input = bytes
    var output: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: min(max(bytes.count * 4, 1_024), 64 * 1_024))
    let error = input.withUnsafeMutableBufferPointer { input -> CompressionError? in
      stream.next_in = input.baseAddress
      stream.avail_in = UInt32(clamping: input.count)
      while true {
        let (result, count) = chunk.withUnsafeMutableBufferPointer { chunk -> (Int32, Int) in
          stream.next_out = chunk.baseAddress
          stream.avail_out = UInt32(clamping: chunk.count)
          let result = inflate(&stream, Z_NO_FLUSH)
          return (result, chunk.count - Int(stream.avail_out))
        }
        guard output.count + count <= limit else { return .tooLong(limit: limit) }
        output.append(contentsOf: chunk[..<count])
        switch result {
        case Z_STREAM_END: return stream.avail_in == 0 ? nil : .malformed
        case Z_OK: continue
        case Z_MEM_ERROR: return .outOfMemory
        // Also Z_BUF_ERROR: no input left and no end seen.
        default: return .malformed
        }
      }
    }
    if let error { throw error }
    return output
  }
}
