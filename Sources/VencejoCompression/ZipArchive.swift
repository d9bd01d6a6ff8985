import CZlib
import Glibc

/// The files of a ZIP archive (PKWARE's APPNOTE.TXT, 6.3), stored or deflated, of any size; one
/// that is encrypted, or parted over disks, is refused.
///
/// What an archive says of itself is not believed: every place is checked against its size, and
/// what comes out of a file against the size and the CRC-32 it is to have.
public final class ZipArchive {
  /// A file in it.
  public struct Entry: Sendable, Hashable {
    /// With the folders it lies in.
    public let name: String
    /// In bytes, once it is read.
    public let size: Int64
    fileprivate let packed: Int64
    fileprivate let offset: Int64
    fileprivate let method: Int
    fileprivate let crc: UInt32
  }

  public let entries: [Entry]
  private let file: CInt
  private let length: Int64

  /// Bytes that a directory may have: some hundred thousand files.
  private static let directoryLimit: Int64 = 64 << 20
  private static let piece = 256 << 10

  /// Opens the archive at a path.
  ///
  /// - Throws: `.malformed` for what is none.
  public init(path: String) throws(CompressionError) {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    var status = stat()
    guard file >= 0 else { throw .malformed }
    guard fstat(file, &status) == 0, let entries = Self.directory(file, Int64(status.st_size))
    else {
      close(file)
      throw .malformed
    }
    self.file = file
    length = Int64(status.st_size)
    self.entries = entries
  }

  deinit { close(file) }

  /// Whether a file begins as archives do.
  public static func isArchive(path: String) -> Bool {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return false }
    defer { close(file) }
    return read(file, 0, 4) == [0x50, 0x4b, 0x03, 0x04]
  }

  // MARK: The directory at the end (4.3.12, 4.3.16)

  private static func directory(_ file: CInt, _ length: Int64) -> [Entry]? {
    // The record at the end has 22 bytes, and a comment of 65,535 at most.
    let tailLength = min(length, 22 + 65_535)
    guard let tail = read(file, length - tailLength, Int(tailLength)) else { return nil }
    guard let end = lastRecord(tail),
      var count = Fields(tail, end).int16(10), var size = Fields(tail, end).int32(12),
      var offset = Fields(tail, end).int32(16), let disk = Fields(tail, end).int16(4), disk == 0
    else { return nil }
    if count == 0xffff || size == 0xffff_ffff || offset == 0xffff_ffff, end >= 20,
      Fields(tail, end - 20).int32(0) == 0x0706_4b50,
      let place = Fields(tail, end - 20).int64(8), place <= length - 56,
      let record = read(file, place, 56), Fields(record, 0).int32(0) == 0x0606_4b50,
      let long = Fields(record, 0).int64(32), let longSize = Fields(record, 0).int64(40),
      let longOffset = Fields(record, 0).int64(48)
    {
      (count, size, offset) = (long, longSize, longOffset)
    }
    guard size <= directoryLimit, offset <= length - size,
      let bytes = read(file, offset, Int(size))
    else { return nil }
    var entries: [Entry] = []
    var at = 0
    while Int64(entries.count) < count {
      guard let (entry, next) = entry(bytes, at) else { return nil }
      entries.append(entry)
      at = next
    }
    return entries
  }

  /// Where the record at the end begins.
  private static func lastRecord(_ tail: [UInt8]) -> Int? {
    var at = tail.count - 22
    while at >= 0 {
      if tail[at] == 0x50, tail[at + 1] == 0x4b, tail[at + 2] == 0x05, tail[at + 3] == 0x06 {
        return at
      }
      at -= 1
    }
    return nil
  }

  private static func entry(_ bytes: [UInt8], _ at: Int) -> (Entry, Int)? {
    let fields = Fields(bytes, at)
    guard fields.int32(0) == 0x0201_4b50, let flags = fields.int16(8), flags & 1 == 0,
      let method = fields.int16(10), let crc = fields.int32(16), var packed = fields.int32(20),
      var size = fields.int32(24), let nameLength = fields.int16(28),
      let extraLength = fields.int16(30), let commentLength = fields.int16(32),
      var offset = fields.int32(42)
    else { return nil }
    let name = at + 46
    let extra = name + Int(nameLength)
    let comment = extra + Int(extraLength)
    let next = comment + Int(commentLength)
    guard next <= bytes.count else { return nil }
    // What did not fit in 32 bits is in an extra field, in this order (4.5.3).
    var field = extra
    while let kind = Fields(bytes, field).int16(0), let length = Fields(bytes, field).int16(2),
      field + 4 + Int(length) <= comment
    {
      if kind == 1 {
        var long = field + 4
        for place in 0..<3 {
          let short = [size, packed, offset][place]
          guard short == 0xffff_ffff, long + 8 <= field + 4 + Int(length),
            let value = Fields(bytes, long).int64(0)
          else { continue }
          long += 8
          switch place {
          case 0: size = value
          case 1: packed = value
          default: offset = value
          }
        }
      }
      field += 4 + Int(length)
    }
    return (
      Entry(
        name: String(decoding: bytes[name..<extra], as: UTF8.self), size: size, packed: packed,
        offset: offset, method: Int(method), crc: UInt32(truncatingIfNeeded: crc)), next
    )
  }

  // MARK: Files

  /// Reads a file, piece by piece; `take` is given at most 256 KiB at once.
  ///
  /// - Throws: ``CompressionError`` when it is damaged or packed in another way, and what `take`
  ///   throws.
  public func read(_ entry: Entry, _ take: ([UInt8]) throws -> Void) throws {
    // Its own header tells how long its own name is (4.3.7).
    guard entry.offset <= length - 30, let header = Self.read(file, entry.offset, 30),
      Fields(header, 0).int32(0) == 0x0403_4b50, let nameLength = Fields(header, 0).int16(26),
      let extraLength = Fields(header, 0).int16(28)
    else { throw CompressionError.malformed }
    let start = entry.offset + 30 + nameLength + extraLength
    guard start <= length, entry.packed <= length - start else { throw CompressionError.malformed }
    var (crc, count) = (crc32(0, nil, 0), Int64(0))
    func hand(_ bytes: [UInt8]) throws {
      count += Int64(bytes.count)
      guard count <= entry.size else { throw CompressionError.malformed }
      crc = crc32(crc, bytes, UInt32(bytes.count))
      if !bytes.isEmpty { try take(bytes) }
    }
    switch entry.method {
    case 0: try pieces(start, entry.packed) { try hand($0) }
    case 8: try inflated(start, entry.packed) { try hand($0) }
    default: throw CompressionError.malformed
    }
    guard count == entry.size, UInt32(truncatingIfNeeded: crc) == entry.crc else {
      throw CompressionError.malformed
    }
  }

  private func pieces(_ start: Int64, _ count: Int64, _ take: ([UInt8]) throws -> Void) throws {
    var at: Int64 = 0
    while at < count {
      let length = Int(min(Int64(Self.piece), count - at))
      guard let bytes = Self.read(file, start + at, length) else {
        throw CompressionError.malformed
      }
      try take(bytes)
      at += Int64(length)
    }
  }

  private func inflated(_ start: Int64, _ count: Int64, _ take: ([UInt8]) throws -> Void) throws {
    var stream = z_stream()
    // Without a header of zlib's.
    guard inflateInit2_(&stream, -15, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
    else { throw CompressionError.outOfMemory }
    defer { inflateEnd(&stream) }
    var result = Z_OK
    try pieces(start, count) { piece in
      var input = piece
      var used = 0
      while result == Z_OK, used < input.count || stream.avail_out == 0 {
        let output = [UInt8](unsafeUninitializedCapacity: Self.piece) { output, filled in
          input.withUnsafeMutableBufferPointer { input in
            stream.next_in = input.baseAddress.map { $0 + used }
            stream.avail_in = UInt32(clamping: input.count - used)
            stream.next_out = output.baseAddress
            stream.avail_out = UInt32(clamping: output.count)
            result = inflate(&stream, Z_NO_FLUSH)
            used = input.count - Int(stream.avail_in)
          }
          filled = output.count - Int(stream.avail_out)
        }
        // No room or no input: it goes on with the next piece.
        if result == Z_BUF_ERROR {
          result = Z_OK
          break
        }
        try take(output)
      }
    }
    guard result == Z_STREAM_END else { throw CompressionError.malformed }
  }

  private static func read(_ file: CInt, _ offset: Int64, _ count: Int) -> [UInt8]? {
    guard offset >= 0, count >= 0 else { return nil }
    var bytes = [UInt8](repeating: 0, count: count)
    var done = 0
    while done < count {
      let got = bytes.withUnsafeMutableBytes { buffer in
        pread(file, buffer.baseAddress.map { $0 + done }, count - done, off_t(offset) + done)
      }
      guard got > 0 else { return nil }
      done += got
    }
    return bytes
  }
}

/// Numbers in an archive, least byte first; nil beyond its end. One that would be negative is
/// beyond every end.
private struct Fields {
  private let bytes: [UInt8]
  private let start: Int

  init(_ bytes: [UInt8], _ start: Int) {
    self.bytes = bytes
    self.start = start
  }

  func int16(_ at: Int) -> Int64? { number(at, 2) }
  func int32(_ at: Int) -> Int64? { number(at, 4) }
  func int64(_ at: Int) -> Int64? { number(at, 8) }

  private func number(_ at: Int, _ size: Int) -> Int64? {
    guard start >= 0, start + at + size <= bytes.count else { return nil }
    var value: UInt64 = 0
    for index in (0..<size).reversed() { value = value << 8 | UInt64(bytes[start + at + index]) }
    return Int64(exactly: value)
  }
}
