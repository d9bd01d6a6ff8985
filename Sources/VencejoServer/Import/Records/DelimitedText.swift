/// Rows of a delimited text (RFC 4180 and what programs make of it): quoted cells with separators,
/// line ends and doubled quotes in them; lines that end as on Unix, Windows or an old Mac.
package struct DelimitedText {
  /// A cell, and whether it stood in quotes: an empty one without is no value.
  package struct Cell: Equatable {
    package var text: String
    package var isQuoted: Bool
  }

  /// What cannot be read, and where.
  package struct Fault: Error, Equatable, CustomStringConvertible {
    package var line: Int
    package var problem: String
    package var description: String { "line \(line): \(problem)" }

    package init(line: Int, problem: String) {
      self.line = line
      self.problem = problem
    }
  }

  private let bytes: [UInt8]
  private let separator: UInt8
  private var at = 0
  /// Of the next row, from 1.
  package private(set) var line = 1

  package init(_ bytes: [UInt8], separator: UInt8) {
    self.bytes = bytes
    self.separator = separator
  }

  /// The next row that is not blank; nil at the end.
  ///
  /// - Throws: ``Fault`` for a quote that is never closed.
  package mutating func next() throws(Fault) -> (line: Int, cells: [Cell])? {
    while at < bytes.count {
      let start = line
      let cells = try row()
      if cells.count > 1 || cells[0].isQuoted || !cells[0].text.isEmpty { return (start, cells) }
    }
    return nil
  }

  private mutating func row() throws(Fault) -> [Cell] {
    var cells: [Cell] = []
    while true {
      cells.append(try cell())
      guard at < bytes.count else { return cells }
      let byte = bytes[at]
      at += 1
      if byte == separator { continue }
      if byte == UInt8(ascii: "\r"), at < bytes.count, bytes[at] == UInt8(ascii: "\n") { at += 1 }
      line += 1
      return cells
    }
  }

  private mutating func cell() throws(Fault) -> Cell {
    let quote = UInt8(ascii: "\"")
    guard at < bytes.count, bytes[at] == quote else {
      let start = at
      while at < bytes.count, !isEnd(bytes[at]) { at += 1 }
      return Cell(text: String(decoding: bytes[start..<at], as: UTF8.self), isQuoted: false)
    }
    let opened = line
    at += 1
    var text: [UInt8] = []
    while true {
      guard at < bytes.count else {
        throw Fault(line: opened, problem: "a quote is opened here and never closed")
      }
      let byte = bytes[at]
      at += 1
      if byte == quote {
        if at < bytes.count, bytes[at] == quote {
          text.append(quote)
          at += 1
          continue
        }
        // What follows the quote before the separator belongs to the cell, as Excel has it.
        while at < bytes.count, !isEnd(bytes[at]) {
          text.append(bytes[at])
          at += 1
        }
        return Cell(text: String(decoding: text, as: UTF8.self), isQuoted: true)
      }
      // A line end within a cell may be two bytes, and is one line.
      if byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") && !isNext(UInt8(ascii: "\n")) {
        line += 1
      }
      text.append(byte)
    }
  }

  private func isNext(_ byte: UInt8) -> Bool { at < bytes.count && bytes[at] == byte }

  private func isEnd(_ byte: UInt8) -> Bool {
    byte == separator || byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r")
  }

  /// The separator that cuts the first rows into most cells, alike in all of them.
  package static func separator(of bytes: [UInt8]) -> UInt8 {
    let sample = Array(bytes.prefix(256 << 10))
    var best = (separator: UInt8(ascii: ","), score: 0)
    for mark in [",", ";", "\t", "|"] as [Character] {
      guard let separator = mark.asciiValue else { continue }
      var text = DelimitedText(sample, separator: separator)
      var counts: [Int: Int] = [:]
      var rows = 0
      // The last row of a part may be cut.
      while rows < 100, let row = try? text.next() {
        rows += 1
        counts[row.cells.count, default: 0] += 1
      }
      let (cells, alike) = counts.max { ($0.value, $0.key) < ($1.value, $1.key) } ?? (1, 0)
      guard cells > 1, rows > 0 else { continue }
      let score = alike * 1000 / rows * 100 + min(cells, 99)
      if score > best.score { best = (separator, score) }
    }
    return best.separator
  }
}

/// Texts as files have them, as UTF-8.
package enum TextEncoding: String {
  case utf8 = "UTF-8"
  case utf16LittleEndian = "UTF-16, little-endian"
  case utf16BigEndian = "UTF-16, big-endian"
  case windows1252 = "Windows-1252"

  /// The text without a byte order mark, and what it was written in: by the mark, or UTF-8 when it
  /// is that, or else what Windows writes.
  package static func decode(_ bytes: [UInt8]) -> (text: [UInt8], encoding: TextEncoding) {
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { return (Array(bytes.dropFirst(3)), .utf8) }
    if bytes.starts(with: [0xFF, 0xFE]) {
      return (utf16(bytes) { UInt16($0) | UInt16($1) << 8 }, .utf16LittleEndian)
    }
    if bytes.starts(with: [0xFE, 0xFF]) {
      return (utf16(bytes) { UInt16($1) | UInt16($0) << 8 }, .utf16BigEndian)
    }
    if String(validating: bytes, as: UTF8.self) != nil { return (bytes, .utf8) }
    var text: [UInt8] = []
    text.reserveCapacity(bytes.count + bytes.count / 8)
    for byte in bytes {
      if byte < 0x80 {
        text.append(byte)
      } else {
        let code = (0x80..<0xA0).contains(byte) ? high[Int(byte) - 0x80] : UInt16(byte)
        text += Array(String(Unicode.Scalar(code) ?? "\u{FFFD}").utf8)
      }
    }
    return (text, .windows1252)
  }

  private static func utf16(_ bytes: [UInt8], _ unit: (UInt8, UInt8) -> UInt16) -> [UInt8] {
    var units: [UInt16] = []
    units.reserveCapacity(bytes.count / 2)
    var index = 2
    while index + 1 < bytes.count {
      units.append(unit(bytes[index], bytes[index + 1]))
      index += 2
    }
    return Array(String(decoding: units, as: UTF16.self).utf8)
  }

  /// 0x80 to 0x9F of Windows-1252; 0xFFFD where there is nothing.
  private static let high: [UInt16] = [
    0x20AC, 0xFFFD, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039,
    0x0152, 0xFFFD, 0x017D, 0xFFFD, 0xFFFD, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
    0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0xFFFD, 0x017E, 0x0178,
  ]
}
