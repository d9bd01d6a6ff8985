// What generated code reads a field with. The tag has been read; its wire type fits.
extension WireReader {
  /// An `int32`, or the number of an enum: the low 32 bits of a varint.
  @inline(never)
  public mutating func int32() -> Int32 { Int32(truncatingIfNeeded: varint()) }
  /// An `int64`.
  @inline(never)
  public mutating func int64() -> Int64 { Int64(bitPattern: varint()) }
  /// A `uint32`: the low 32 bits of a varint.
  @inline(never)
  public mutating func uint32() -> UInt32 { UInt32(truncatingIfNeeded: varint()) }
  /// A `uint64`.
  @inline(never)
  public mutating func uint64() -> UInt64 { varint() }
  /// A `sint32`, zigzag.
  @inline(never)
  public mutating func sint32() -> Int32 {
    let value = UInt32(truncatingIfNeeded: varint())
    return Int32(bitPattern: value >> 1) ^ -Int32(bitPattern: value & 1)
  }
  /// A `sint64`, zigzag.
  @inline(never)
  public mutating func sint64() -> Int64 {
    let value = varint()
    return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
  }
  /// A `bool`: any varint but 0 is true.
  @inline(never)
  public mutating func bool() -> Bool { varint() != 0 }
  /// A `fixed32`.
  public mutating func fixedUInt32() -> UInt32 { fixed32() }
  /// A `fixed64`.
  public mutating func fixedUInt64() -> UInt64 { fixed64() }
  /// An `sfixed32`.
  public mutating func fixedInt32() -> Int32 { Int32(bitPattern: fixed32()) }
  /// An `sfixed64`.
  public mutating func fixedInt64() -> Int64 { Int64(bitPattern: fixed64()) }
  /// A `float`.
  public mutating func float() -> Float { Float(bitPattern: fixed32()) }
  /// A `double`.
  public mutating func double() -> Double { Double(bitPattern: fixed64()) }

  /// A `string`; fails unless it is UTF-8.
  @inline(never)
  public mutating func string() -> String {
    if let value = utf8() { return value }
    failUTF8()
    return ""
  }

  @inline(never)
  private mutating func failUTF8() {
    _ = length()
    fail(.invalidUTF8)
  }

  /// A string, or nil when it is not UTF-8: then the position stays before its length.
  //
  // In line: it is most of what its callers do, and each field of text would pay for the call.
  @inline(__always)
  private mutating func utf8() -> String? {
    let start = position
    let length = self.length()
    if length < 16 {
      if length == 0 { return "" }
      if position <= lastSixteen, let words = StringWords(ascii: position, count: length) {
        position += length
        return words.string
      }
    }
    let bytes = UnsafeRawBufferPointer(start: position, count: length)
    // Not `String(validating:as:)`, which is generic and not specialized in the library.
    guard let span = try? UTF8Span(validating: bytes.bindMemory(to: UInt8.self).span) else {
      position = start
      return nil
    }
    position += length
    return String(copying: span)
  }

  /// A string of a field whose UTF-8 nobody checks (proto2's, and where `utf8_validation` is
  /// `NONE`). One that is not UTF-8 does not fit a `String`: it is nil and ``refused``.
  @usableFromInline
  @inline(never)
  mutating func looseString() -> String? {
    if let value = utf8() { return value }
    position += length()
    refused = true
    return nil
  }

  /// Like ``string()``, for a field whose UTF-8 nobody checks: one that is not UTF-8 stays an
  /// unknown field.
  @inline(never)
  public mutating func looseString(_ unknown: inout UnknownFields) -> String? {
    if let value = utf8() { return value }
    keepLength(in: &unknown)
    return nil
  }

  /// Keeps a field whose tag has been read, but not the length.
  @inline(never)
  private mutating func keepLength(in unknown: inout UnknownFields) {
    position += length()
    keep(in: &unknown)
  }

  /// Elements of a `repeated string` whose UTF-8 nobody checks. One that is not UTF-8 stays an
  /// unknown field, and so do those behind it: written again, they are in their order.
  @inline(never)
  public mutating func looseStrings(into list: inout [String], _ unknown: inout UnknownFields) {
    if refusedList != 0, refusedList == currentTag {
      skip(refusedList)
      return keep(in: &unknown)
    }
    if let value = looseString(&unknown) {
      if error == nil { list.append(value) }
    } else {
      refusedList = currentTag
    }
  }

  /// The tag of the field being read, of one to five bytes.
  private var currentTag: UInt32 {
    var tag: UInt32 = 0
    for (index, byte) in UnsafeRawBufferPointer(start: fieldStart, count: min(end - fieldStart, 5))
      .enumerated()
    {
      tag |= UInt32(byte & 0x7F) << UInt32(7 * index)
      if byte < 0x80 { break }
    }
    return tag
  }

  /// A value of a closed enum; another number stays an unknown field.
  @inlinable
  public mutating func closed<E: ClosedEnumeration>(
    _: E.Type, _ unknown: inout UnknownFields
  ) -> E? {
    let number = int32()
    if E.isKnown(number) { return E(rawValue: number) }
    keep(in: &unknown)
    return nil
  }

  /// Values of a repeated closed enum, packed or not; other numbers stay unknown fields.
  @inlinable
  public mutating func closed<E: ClosedEnumeration>(
    _ tag: UInt32, into list: inout [E], _ unknown: inout UnknownFields
  ) {
    guard tag & 7 == 2 else {
      if let value = closed(E.self, &unknown), error == nil { list.append(value) }
      return
    }
    let outer = enterRun()
    while !isAtEnd {
      let number = int32()
      if error != nil { break }
      if E.isKnown(number) {
        list.append(E(rawValue: number))
      } else {
        unknown.append(number: tag >> 3, varint: UInt64(bitPattern: Int64(number)))
      }
    }
    leaveRun(outer)
  }

  /// A `bytes`.
  @inline(never)
  public mutating func bytes() -> [UInt8] {
    let length = self.length()
    let value = [UInt8](UnsafeRawBufferPointer(start: position, count: length))
    position += length
    return value
  }

  /// The bytes behind a length, where they are.
  package mutating func span() -> UnsafeRawBufferPointer {
    let length = self.length()
    defer { position += length }
    return UnsafeRawBufferPointer(start: position, count: length)
  }

  /// What a field's value takes behind its tag, which has just been read.
  package mutating func value(_ tag: UInt32) -> UnsafeRawBufferPointer {
    let start = position
    skip(tag)
    return UnsafeRawBufferPointer(start: start, count: error == nil ? position - start : 0)
  }

  /// An enum; unknown numbers are values too.
  @inlinable
  public mutating func enumeration<E: Enumeration>() -> E { E(rawValue: int32()) }

  /// A singular sub-message: merged into the one there is.
  @inlinable
  @inline(never)
  public mutating func message<M: Message>(into field: inout M?) {
    // Taken out of the field while it changes, so that it stays uniquely referenced.
    var value = field.take() ?? M()
    let outer = enter()
    value.decode(from: &self)
    leave(outer)
    field = value
  }

  /// A sub-message: merged into the value.
  @inlinable
  public mutating func message<M: Message>(into value: inout M) {
    let outer = enter()
    value.decode(from: &self)
    leave(outer)
  }

  /// An element of a repeated message field.
  @inlinable
  @inline(never)
  public mutating func message<M: Message>(into list: inout [M]) {
    if list.isEmpty { list.reserveCapacity(repetitions()) }
    var value = M()
    let outer = enter()
    value.decode(from: &self)
    leave(outer)
    list.append(consume value)
  }

  /// A singular group: merged into the one there is.
  @inlinable
  public mutating func group<M: Message>(_ tag: UInt32, into field: inout M?) {
    var value = field.take() ?? M()
    group(tag, into: &value)
    field = value
  }

  /// A group: merged into the value.
  @inlinable
  public mutating func group<M: Message>(_ tag: UInt32, into value: inout M) {
    let outer = enterGroup(tag)
    value.decode(from: &self)
    leaveGroup(outer)
  }

  /// An element of a repeated group.
  @inlinable
  public mutating func group<M: Message>(_ tag: UInt32, into list: inout [M]) {
    var value = M()
    group(tag, into: &value)
    list.append(value)
  }

  /// An element of a repeated field, or a packed run of them, as the tag says.
  @inlinable
  public mutating func list<C: WireCoding>(
    _ coding: C.Type, _ tag: UInt32, into list: inout [C.Value]
  ) {
    guard tag & 7 == 2 && C.wireType != 2 else {
      if C.wireType == 2 && list.isEmpty { list.reserveCapacity(repetitions()) }
      var value = C.initial
      C.read(from: &self, into: &value)
      if error == nil { list.append(value) }
      return
    }
    let outer = enterRun()
    if C.fixedWidth == 0 {
      // Only once: reserving exactly for each of many short runs would copy the list each time.
      if list.isEmpty { list.reserveCapacity(varintsLeft()) }
      while position < end {
        var value = C.initial
        C.read(from: &self, into: &value)
        if error == nil { list.append(value) }
      }
    } else {
      fixed(width: C.fixedWidth, into: &list)
    }
    leaveRun(outer)
  }

  /// An element of a repeated field of varints, or a packed run of them, as the tag says.
  @inlinable
  public mutating func list<C: WireVarintCoding>(
    _ coding: C.Type, _ tag: UInt32, into list: inout [C.Value]
  ) {
    guard tag & 7 == 2 else {
      let bits = uint64()
      if error == nil { list.append(C.value(of: bits)) }
      return
    }
    let outer = enterRun()
    let count = varintsLeft()
    // A new array for the first run, of which most lists have one: filled without asking before
    // each element whether there is room.
    if list.isEmpty {
      list = [C.Value](unsafeUninitializedCapacity: count) { buffer, initialized in
        while initialized < count && position < end {
          buffer.initializeElement(at: initialized, to: C.value(of: nextVarint()))
          initialized &+= 1
        }
        // An error ends the run: the last one was none.
        if error != nil { initialized = max(initialized - 1, 0) }
      }
    }
    while position < end {
      let bits = nextVarint()
      if error == nil { list.append(C.value(of: bits)) }
    }
    leaveRun(outer)
  }

  /// How many elements of the repeated field being read follow each other from here, the one
  /// whose tag has been read included. Its wire type must be 2. What is malformed ends them.
  @usableFromInline
  @inline(never)
  package func repetitions() -> Int {
    let tag = UnsafeRawBufferPointer(start: fieldStart, count: position - fieldStart)
    var count = 0
    var place = position
    while true {
      // A length, as `length` reads it.
      var length = 0
      var shift = 0
      while true {
        guard place < end, shift < 35 else { return max(count, 1) }
        let byte = place.load(as: UInt8.self)
        place += 1
        length |= Int(byte & 0x7F) << shift
        shift += 7
        if byte < 0x80 { break }
      }
      guard length <= end - place else { return max(count, 1) }
      count += 1
      place += length
      guard end - place > tag.count else { return count }
      for (offset, byte) in tag.enumerated()
      where place.load(fromByteOffset: offset, as: UInt8.self) != byte { return count }
      place += tag.count
    }
  }

  /// How many varints end within the current message.
  @usableFromInline
  func varintsLeft() -> Int {
    var count = 0
    for byte in UnsafeRawBufferPointer(start: position, count: end - position) {
      count &+= Int(~byte >> 7)
    }
    return count
  }

  /// Copies packed fixed-width values. The layout of `Value` is the wire's: all our targets
  /// are little-endian.
  @inlinable
  mutating func fixed<Value>(width: Int, into list: inout [Value]) {
    let size = end - position
    guard size % width == 0 else { return fail(.misalignedPacked) }
    guard size > 0 else { return }
    let start = position
    position = end
    list += [Value](unsafeUninitializedCapacity: size / width) { buffer, count in
      UnsafeMutableRawBufferPointer(buffer).copyMemory(
        from: UnsafeRawBufferPointer(start: start, count: size))
      count = size / width
    }
  }

  /// An entry of a map: the last one of a key wins, a missing part is its default. An entry
  /// that the dictionary cannot hold stays an unknown field: of a value its type refuses, or
  /// of a string for a key that Swift takes for another one there, though their bytes differ
  /// (canonical equivalence).
  @inlinable
  public mutating func map<K: WireKeyCoding, V: WireCoding>(
    _: K.Type, _: V.Type, into map: inout [K.Value: V.Value], _ unknown: inout UnknownFields
  ) {
    if map.isEmpty { map.reserveCapacity(repetitions()) }
    let start = fieldStart
    var key = K.initial
    var value = V.initial
    var refused = false
    let outer = enter()
    while true {
      switch nextTag() {
      case 0:
        leave(outer)
        guard error == nil else { return }
        if refused { return keep(from: start, in: &unknown) }
        if let old = map.updateValue(value, forKey: key), !K.replaces(key, in: map) {
          map[key] = old
          keep(from: start, in: &unknown)
        }
        return
      case 8 | K.wireType:
        K.read(from: &self, into: &key)
        if takeRefusal() { refused = true }
      case 16 | V.wireType:
        V.read(from: &self, into: &value)
        if takeRefusal() { refused = true }
      case let tag: skip(tag)
      }
    }
  }

  @usableFromInline
  mutating func takeRefusal() -> Bool {
    defer { refused = false }
    return refused
  }
}
