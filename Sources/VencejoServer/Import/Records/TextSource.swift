import Glibc

/// The bytes of a file, or of an array, from the beginning as often as needed.
package final class ByteSource {
  private enum Origin {
    case array([UInt8], at: Int)
    case file(Int32)
  }
  private var origin: Origin

  package init(_ bytes: [UInt8]) { origin = .array(bytes, at: 0) }

  /// A file that can be read twice: no pipe.
  ///
  /// - Throws: ``DelimitedText/Fault`` when it cannot be opened.
  package init(path: String) throws(DelimitedText.Fault) {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Self.fault(path) }
    guard lseek(descriptor, 0, SEEK_SET) == 0 else {
      let fault = Self.fault(path)
      close(descriptor)
      throw fault
    }
    origin = .file(descriptor)
  }

  deinit { if case .file(let descriptor) = origin { close(descriptor) } }

  private static func fault(_ path: String) -> DelimitedText.Fault {
    .init(line: 0, problem: "cannot read \(path): \(String(cString: strerror(errno)))")
  }

  func rewind() {
    switch origin {
    case .array(let bytes, _): origin = .array(bytes, at: 0)
    case .file(let descriptor): _ = lseek(descriptor, 0, SEEK_SET)
    }
  }

  /// Up to `count` bytes; none at the end.
  func read(_ count: Int) throws(DelimitedText.Fault) -> [UInt8] {
    switch origin {
    case .array(let bytes, let at):
      let end = min(bytes.count, at + count)
      origin = .array(bytes, at: end)
      return Array(bytes[at..<end])
    case .file(let descriptor):
      var result = 0
      let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
        repeat {
          result = Glibc.read(descriptor, buffer.baseAddress, count)
        } while result < 0
          && errno == EINTR
        filled = max(0, result)
      }
      guard result >= 0 else { throw Self.fault("on") }
      return bytes
    }
  }
}

/// Texts as files have them.
package enum TextEncoding: String {
  case utf8 = "UTF-8"
  case utf16LittleEndian = "UTF-16, little-endian"
  case utf16BigEndian = "UTF-16, big-endian"
  case windows1252 = "Windows-1252"

  /// What a text is written in: by its mark, by where its zeros are, or UTF-8 when all of it is
  /// that, or else what Windows writes. And how many bytes its mark has.
  static func detect(
    _ source: ByteSource
  ) throws(DelimitedText.Fault) -> (encoding: TextEncoding, mark: Int) {
    defer { source.rewind() }
    source.rewind()
    var chunk = try source.read(1 << 20)
    if chunk.starts(with: [0xEF, 0xBB, 0xBF]) { return (.utf8, 3) }
    if chunk.starts(with: [0xFF, 0xFE]) { return (.utf16LittleEndian, 2) }
    if chunk.starts(with: [0xFE, 0xFF]) { return (.utf16BigEndian, 2) }
    if let encoding = withoutMark(chunk.prefix(4096)) { return (encoding, 0) }
    var check = UTF8Check()
    while !chunk.isEmpty {
      guard check.take(chunk) else { return (.windows1252, 0) }
      chunk = try source.read(1 << 20)
    }
    return check.isComplete ? (.utf8, 0) : (.windows1252, 0)
  }

  /// Latin letters in UTF-16 have a zero in every other byte.
  private static func withoutMark(_ start: ArraySlice<UInt8>) -> TextEncoding? {
    guard start.count >= 4 else { return nil }
    var even = 0
    var odd = 0
    for (index, byte) in start.enumerated() where byte == 0 {
      if index % 2 == 0 { even += 1 } else { odd += 1 }
    }
    let half = start.count / 2
    if odd > half / 2, even < half / 20 { return .utf16LittleEndian }
    if even > half / 2, odd < half / 20 { return .utf16BigEndian }
    return nil
  }

  /// 0x80 to 0x9F of Windows-1252; 0xFFFD where there is nothing.
  static let high: [UInt16] = [
    0x20AC, 0xFFFD, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039,
    0x0152, 0xFFFD, 0x017D, 0xFFFD, 0xFFFD, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
    0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0xFFFD, 0x017E, 0x0178,
  ]
}

/// Whether bytes are UTF-8, part by part.
private struct UTF8Check {
  /// Bytes of a letter that a part ended within.
  private var rest: [UInt8] = []
  var isComplete: Bool { rest.isEmpty }

  mutating func take(_ part: [UInt8]) -> Bool {
    let bytes = rest.isEmpty ? part : rest + part
    rest = []
    // The last letter may be cut: look back for where it begins.
    var end = bytes.count
    for back in 1...4 where back <= bytes.count {
      let byte = bytes[bytes.count - back]
      guard byte & 0xC0 != 0x80 else { continue }
      let length = byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4
      if length > back { end = bytes.count - back }
      break
    }
    rest = Array(bytes[end...])
    return bytes.withUnsafeBufferPointer { buffer in
      isASCII(buffer, end)
        || String(validating: UnsafeBufferPointer(rebasing: buffer[..<end]), as: UTF8.self) != nil
    }
  }

  private func isASCII(_ bytes: UnsafeBufferPointer<UInt8>, _ end: Int) -> Bool {
    var any: UInt8 = 0
    for index in 0..<end { any |= bytes[index] }
    return any < 0x80
  }
}

/// A text in UTF-8, a window of it at a time: a row lies in it as a whole, however long the file.
package struct TextWindow {
  /// The longest row, in bytes: a few times the largest record.
  static let maxRow = 8 << 20
  let maxRow: Int
  /// The same in words.
  var limit: String { maxRow >= 1 << 20 ? "\(maxRow >> 20) MiB" : "\(maxRow >> 10) KiB" }

  private(set) var bytes: [UInt8] = []
  var at = 0
  /// What follows the window is the end of the text.
  private(set) var isLast = false
  package private(set) var encoding: TextEncoding
  private let source: ByteSource
  private let mark: Int
  /// Bytes that a part ended within a letter of.
  private var rest: [UInt8] = []

  init(_ source: ByteSource, maxRow: Int = Self.maxRow) throws(DelimitedText.Fault) {
    self.source = source
    self.maxRow = maxRow
    (encoding, mark) = try TextEncoding.detect(source)
    try rewind()
  }

  mutating func rewind() throws(DelimitedText.Fault) {
    source.rewind()
    _ = mark > 0 ? try source.read(mark) : []
    bytes = []
    rest = []
    at = 0
    isLast = false
    try refill()
  }

  /// Makes room for a row: between two of them.
  mutating func refill() throws(DelimitedText.Fault) {
    guard !isLast, bytes.count - at < maxRow else { return }
    bytes.removeFirst(at)
    at = 0
    while !isLast, bytes.count < 2 * maxRow {
      let part = try source.read(maxRow)
      if part.isEmpty { isLast = true }
      append(part)
    }
  }

  private mutating func append(_ part: [UInt8]) {
    switch encoding {
    case .utf8: bytes += part
    case .windows1252:
      bytes.reserveCapacity(bytes.count + part.count + part.count / 8)
      for byte in part {
        if byte < 0x80 {
          bytes.append(byte)
        } else {
          let code = byte < 0xA0 ? TextEncoding.high[Int(byte) - 0x80] : UInt16(byte)
          bytes += Array(String(Unicode.Scalar(code) ?? "\u{FFFD}").utf8)
        }
      }
    case .utf16LittleEndian, .utf16BigEndian:
      let all = rest + part
      var units: [UInt16] = []
      units.reserveCapacity(all.count / 2)
      var index = 0
      while index + 1 < all.count {
        let (a, b) = (UInt16(all[index]), UInt16(all[index + 1]))
        units.append(encoding == .utf16LittleEndian ? a | b << 8 : a << 8 | b)
        index += 2
      }
      // The second half of a letter may be in the next part.
      if !isLast, let last = units.last, (0xD800..<0xDC00).contains(last) {
        units.removeLast()
        index -= 2
      }
      rest = Array(all[index...])
      bytes += Array(String(decoding: units, as: UTF16.self).utf8)
    }
  }
}
