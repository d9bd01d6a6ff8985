/// Reads protobuf's wire format (protobuf.dev, "Encoding") from bytes that outlive it.
///
/// It never traps and never reads out of bounds. The first malformed byte sets ``error`` and
/// ends every loop: ``nextTag()`` then returns 0 and values read as zero or empty. Generated
/// code so needs no `throw` per field.
public struct WireReader: ~Copyable {
  /// Messages and groups that may nest in each other, as in protobuf's other implementations.
  public static let maximumDepth = 100

  // Invariant: base <= fieldStart <= position <= end, all within the caller's buffer; after
  // an error position == end.
  let base: UnsafeRawPointer
  @usableFromInline var position: UnsafeRawPointer
  @usableFromInline var end: UnsafeRawPointer
  @usableFromInline package var fieldStart: UnsafeRawPointer
  /// The last place in the buffer where sixteen bytes can be read, of use where ``StringWords`` are
  /// known; else a place before all others.
  let lastSixteen: UnsafeRawPointer
  /// How many more messages may be entered.
  package var depthLeft = WireReader.maximumDepth
  /// The number of the group being read, until its end-group tag is; 0 in other messages.
  var group: UInt32 = 0
  /// The tag of the list in the current message of which an element stayed an unknown field, as it
  /// is not UTF-8: the elements behind it do too, so that they keep their order; 0 for none.
  var refusedList: UInt32 = 0
  /// Whether a value was read that its type cannot hold: an unknown number of a closed enum,
  /// a string that is not UTF-8. Whoever reads such values asks, and resets it.
  @usableFromInline var refused = false

  /// The first thing that was wrong with the input, if anything was.
  public private(set) var error: DecodingError?

  // Stands in for the address of an empty buffer, which has none. Never read, as its
  // length is zero, and never changed.
  private nonisolated(unsafe) static let nothing = UnsafeRawPointer(
    UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1))

  /// Reads a message that fills the buffer, which must outlive the reader.
  public init(_ buffer: UnsafeRawBufferPointer) {
    base = buffer.baseAddress ?? Self.nothing
    position = base
    end = base + buffer.count
    fieldStart = base
    lastSixteen = base + (StringWords.areKnown && buffer.count >= 16 ? buffer.count - 16 : -1)
  }

  /// What is left of the current message.
  package var rest: UnsafeRawBufferPointer { .init(start: position, count: end - position) }

  /// Whether the current message has been read to its end, or an error ended it.
  @inlinable
  public var isAtEnd: Bool { position == end }

  /// Records an error, unless there is one, and ends all reading.
  @usableFromInline
  @inline(never)
  mutating func fail(_ kind: DecodingError.Kind) {
    if error == nil { error = DecodingError(kind: kind, offset: position - base) }
    position = end
  }

  // MARK: Tags

  /// The next field's tag (number << 3 | wire type), or 0 at the end of the message.
  @inlinable
  public mutating func nextTag() -> UInt32 {
    fieldStart = position
    guard position < end else { return 0 }
    let first = position.load(as: UInt8.self)
    // One-byte tags of fields 1 to 15 whose wire type exists; the rest takes the long way.
    if first < 0x80 && first >= 8 && (0b10_0111 &>> (first & 7)) & 1 == 1 {
      position += 1
      return UInt32(first)
    }
    return longTag()
  }

  @usableFromInline
  @inline(never)
  mutating func longTag() -> UInt32 {
    // Two bytes, of fields 16 to 2047, and no group's end.
    if end - position >= 2 {
      let first = UInt32(position.load(as: UInt8.self))
      let second = UInt32(position.load(fromByteOffset: 1, as: UInt8.self))
      if first >= 0x80 && second > 0 && second < 0x80 && (0b10_1111 &>> (first & 7)) & 1 == 1 {
        position += 2
        return first & 0x7F | second << 7
      }
    }
    let tag = rawTag()
    if tag & 7 == 4 {
      if tag >> 3 == group {
        group = 0
      } else {
        fail(.unexpectedEndGroup)
      }
      return 0
    }
    return tag
  }

  /// The next tag in an item of a `MessageSet`; nil at its end. Fields without a number are skipped
  /// there like others that do not belong in it, as upb does.
  package mutating func itemTag() -> UInt32? {
    fieldStart = position
    guard position < end else { return nil }
    let tag = rawTag(least: 0)
    if error != nil { return nil }
    guard tag & 7 == 4 else { return tag }
    if tag >> 3 == group { group = 0 } else { fail(.unexpectedEndGroup) }
    return nil
  }

  /// A tag with a valid field number and wire type (also end-group), or 0 after failing.
  private mutating func rawTag(least: UInt32 = 8) -> UInt32 {
    var tag: UInt64 = 0
    var shift: UInt64 = 0
    while true {
      guard position < end else {
        fail(.truncated)
        return 0
      }
      let byte = position.load(as: UInt8.self)
      tag |= UInt64(byte & 0x7F) << shift
      position += 1
      if byte < 0x80 { break }
      shift += 7
      if shift > 28 {
        fail(.invalidTag)
        return 0
      }
    }
    guard let tag = UInt32(exactly: tag), tag >= least, tag & 7 < 6 else {
      fail(.invalidTag)
      return 0
    }
    return tag
  }

  // MARK: Sub-messages

  /// What to return to when a sub-message has been read.
  public struct Frame {
    let end: UnsafeRawPointer
    let group: UInt32
    let refusedList: UInt32
  }

  /// Reads a length and makes the bytes it covers the current message. Returns what
  /// ``leave(_:)`` needs.
  @inline(never)
  public mutating func enter() -> Frame {
    let length = self.length()
    let outer = Frame(end: end, group: group, refusedList: refusedList)
    guard depthLeft > 0 else {
      fail(.depthExceeded)
      return outer
    }
    depthLeft -= 1
    group = 0
    refusedList = 0
    end = position + length
    return outer
  }

  /// Returns to the message around the one that was entered.
  @inline(never)
  public mutating func leave(_ outer: Frame) {
    if error == nil {
      depthLeft += 1
      position = end
      end = outer.end
      group = outer.group
      refusedList = outer.refusedList
    } else {
      position = end
    }
  }

  /// Makes the group whose start tag was just read the current message: it ends with its
  /// end-group tag.
  @inline(never)
  public mutating func enterGroup(_ tag: UInt32) -> Frame {
    let outer = Frame(end: end, group: group, refusedList: refusedList)
    guard depthLeft > 0 else {
      fail(.depthExceeded)
      return outer
    }
    depthLeft -= 1
    group = tag >> 3
    refusedList = 0
    return outer
  }

  /// Returns to the message around the group; fails when the group has not ended.
  @inline(never)
  public mutating func leaveGroup(_ outer: Frame) {
    guard error == nil else { return }
    if group != 0 { return fail(.unterminatedGroup) }
    depthLeft += 1
    group = outer.group
    refusedList = outer.refusedList
  }

  /// Like ``enter()``, for a packed run of values, which is no message and does not count as
  /// one for the depth.
  @inline(never)
  public mutating func enterRun() -> Frame {
    let length = self.length()
    let outer = Frame(end: end, group: group, refusedList: refusedList)
    end = position + length
    return outer
  }

  /// Returns to the message around the run.
  @inline(never)
  public mutating func leaveRun(_ outer: Frame) {
    if error == nil { end = outer.end }
  }

  /// A length that is known to fit into the current message; 0 after failing.
  @inline(__always)
  mutating func length() -> Int {
    if position < end {
      let first = Int(position.load(as: UInt8.self))
      if first < 0x80 && first < end - position {
        position += 1
        return first
      }
    }
    return longLength()
  }

  @inline(never)
  private mutating func longLength() -> Int {
    let length = varint()
    guard length <= UInt64(end - position) else {
      fail(.truncated)
      return 0
    }
    return Int(length)
  }

  // MARK: Numbers

  /// A varint of up to ten bytes; bits beyond the 64th are dropped.
  mutating func varint() -> UInt64 {
    if position < end {
      let first = position.load(as: UInt8.self)
      if first < 0x80 {
        position += 1
        return UInt64(first)
      }
    }
    return nextVarint()
  }

  /// A varint whose length nobody can guess.
  @usableFromInline
  mutating func nextVarint() -> UInt64 {
    guard end - position >= 8 else { return slowVarint() }
    let bytes = UInt64(littleEndian: position.loadUnaligned(as: UInt64.self))
    let ends = ~bytes & 0x8080_8080_8080_8080
    guard ends != 0 else { return slowVarint() }
    // The bytes up to the first without its high bit; then their groups of seven bits are
    // brought together: pairs, then quarters, then halves.
    let size = ends.trailingZeroBitCount &+ 1
    var bits = bytes & (UInt64.max &>> UInt64(truncatingIfNeeded: 64 &- size))
    bits = bits & 0x007F_007F_007F_007F | (bits & 0x7F00_7F00_7F00_7F00) >> 1
    bits = bits & 0x0000_3FFF_0000_3FFF | (bits & 0x3FFF_0000_3FFF_0000) >> 2
    bits = bits & 0x0000_0000_0FFF_FFFF | (bits & 0x0FFF_FFFF_0000_0000) >> 4
    position += size &>> 3
    return bits
  }

  /// A varint near the end, or of nine or ten bytes.
  @inline(never)
  private mutating func slowVarint() -> UInt64 {
    var value: UInt64 = 0
    let available = min(end - position, 10)
    var index = 0
    while index < available {
      let byte = position.load(fromByteOffset: index, as: UInt8.self)
      value |= UInt64(byte & 0x7F) << UInt64(7 &* index)
      index &+= 1
      if byte < 0x80 {
        position += index
        return value
      }
    }
    fail(available == 10 ? .malformedVarint : .truncated)
    return 0
  }

  /// Four bytes, little-endian.
  mutating func fixed32() -> UInt32 {
    guard end - position >= 4 else {
      fail(.truncated)
      return 0
    }
    let value = UInt32(littleEndian: position.loadUnaligned(as: UInt32.self))
    position += 4
    return value
  }

  /// Eight bytes, little-endian.
  mutating func fixed64() -> UInt64 {
    guard end - position >= 8 else {
      fail(.truncated)
      return 0
    }
    let value = UInt64(littleEndian: position.loadUnaligned(as: UInt64.self))
    position += 8
    return value
  }

  // MARK: Fields nobody knows

  /// Keeps the field that begins with the tag just read.
  @inline(never)
  public mutating func unknown(_ tag: UInt32, into fields: inout UnknownFields) {
    let start = fieldStart
    skip(tag)
    if error == nil {
      fields.append(UnsafeRawBufferPointer(start: start, count: position - start))
    }
  }

  /// Keeps the field being read, up to here.
  @inline(never)
  @usableFromInline
  package mutating func keep(from start: UnsafeRawPointer, in fields: inout UnknownFields) {
    if error == nil {
      fields.append(UnsafeRawBufferPointer(start: start, count: position - start))
    }
  }

  /// Keeps the field whose tag and value have just been read, because its type cannot hold
  /// the value.
  public mutating func keep(in fields: inout UnknownFields) { keep(from: fieldStart, in: &fields) }

  /// Skips the value of the field whose tag was just read. Groups are skipped with a stack
  /// of their numbers, not by recursion.
  @inline(never)
  public mutating func skip(_ tag: UInt32) { skip(tag, inItem: false) }

  /// The same; in an item of a `MessageSet` fields need no number.
  package mutating func skip(_ tag: UInt32, inItem: Bool) {
    var groups: [UInt32] = []
    var tag = tag
    repeat {
      switch tag & 7 {
      case 0: _ = varint()
      case 1: _ = fixed64()
      case 2: position += length()
      case 3:
        guard groups.count < depthLeft else { return fail(.depthExceeded) }
        groups.append(tag >> 3)
      case 4:
        guard groups.popLast() == tag >> 3 else { return fail(.unexpectedEndGroup) }
      case 5: _ = fixed32()
      default: return fail(.invalidTag)
      }
      if groups.isEmpty { return }
      guard position < end else { return fail(.unterminatedGroup) }
      tag = rawTag(least: inItem ? 0 : 8)
    } while error == nil
  }
}
