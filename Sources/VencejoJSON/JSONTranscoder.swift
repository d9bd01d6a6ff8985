import VencejoDescriptors
import VencejoProtobuf

/// Makes wire format of JSON in one pass, by descriptor.
struct JSONTranscoder: ~Copyable {
  typealias Field = FieldPlan

  let options: JSONOptions
  var text: JSONCursor
  var out: ByteBuffer
  /// Where the keys of the maps being read stand in ``out``.
  private var keys: [Range<Int>] = []

  private init(_ text: UnsafeRawBufferPointer, _ options: JSONOptions) {
    self.options = options
    self.text = JSONCursor(text)
    out = ByteBuffer(capacity: text.count)
  }

  /// The encoded message a text describes; throws a fault with its place in the text.
  static func transcode(
    _ json: String, as type: MessageDescriptor, _ options: JSONOptions
  ) throws(JSONFault) -> [UInt8] {
    var json = json
    // A closure that throws a type of its own, given to a generic function, is beyond the
    // compiler.
    let result: Result<[UInt8], JSONFault> = json.withUTF8 { bytes in
      var transcoder = JSONTranscoder(UnsafeRawBufferPointer(bytes), options)
      do throws(JSONFault) {
        try transcoder.all(type)
      } catch {
        return .failure(error)
      }
      return .success(transcoder.out.bytes())
    }
    return try result.get()
  }

  private mutating func all(_ type: MessageDescriptor) throws(JSONFault) {
    text.skipBlanks()
    try message(type.table, type.pool)
    text.skipBlanks()
    guard text.isAtEnd else { throw text.fault("unexpected text behind the value") }
  }

  // MARK: Messages

  /// Reads a message's fields, without a length before them.
  mutating func message(_ type: MessageTable, _ pool: DescriptorPool) throws(JSONFault) {
    if let wellKnown = type.wellKnown { return try message(type, wellKnown, pool) }
    guard text.next == UInt8(ascii: "{") else {
      throw text.unexpected("an object for \(type.fullName)")
    }
    try members(type, pool, isPacked: false)
  }

  /// Which fields of a message have been read.
  private struct Seen {
    var fields = SmallSet()
    var oneofs = SmallSet()
    var hasType = false
    /// The index of the last one.
    var last = -1
  }

  /// Reads an object's members as fields; `@type`, when the message is packed in an `Any`, is
  /// skipped.
  mutating func members(
    _ type: MessageTable, _ pool: DescriptorPool, isPacked: Bool
  ) throws(JSONFault) {
    var seen = Seen()
    var isFirst = true
    try text.open()
    while try text.next(&isFirst, until: UInt8(ascii: "}")) {
      let start = text.position
      do throws(JSONFault) {
        try member(type, pool, isPacked: isPacked, &seen)
      } catch {
        throw error.at(text.step(at: start))
      }
    }
  }

  private mutating func member(
    _ type: MessageTable, _ pool: DescriptorPool, isPacked: Bool, _ seen: inout Seen
  ) throws(JSONFault) {
    let start = text.position
    let name = try text.name()
    guard let index = type.index(ofName: name, after: seen.last) else {
      let isType = isPacked && name.elementsEqual("@type".utf8)
      if isType && seen.hasType { throw text.fault("the @type is there twice", at: start) }
      if !isType && !options.ignoreUnknown {
        throw text.fault("\(type.fullName) has no such field", at: start)
      }
      seen.hasType = seen.hasType || isType
      try text.colon()
      return try text.skip()
    }
    seen.last = index
    let field = type.ordered[index]
    guard seen.fields.insert(index) else { throw text.fault("the field is there twice", at: start) }
    try text.colon()
    // null means absence, but for the types to which it is a value.
    if text.next == UInt8(ascii: "n") && !field.takesNull { return try text.word("null") }
    if field.oneof >= 0, !seen.oneofs.insert(field.oneof) {
      throw text.fault("another field of the same oneof is there", at: start)
    }
    if type.isMessageSet && field.isExtension && field.kind == .message && !field.isRepeated {
      try item(field, pool)
    } else if field.isMap {
      try map(field, pool)
    } else if field.isRepeated {
      try list(field, pool)
    } else {
      _ = try value(field, pool, skipsDefault: !field.hasPresence)
    }
  }

  /// Reads a message as an item of a `MessageSet`: a group with the extension's number and the
  /// message.
  private mutating func item(_ field: Field, _ pool: DescriptorPool) throws(JSONFault) {
    out.append(0x0B)
    out.append(0x10)
    out.varint(UInt64(UInt32(bitPattern: field.number)))
    out.append(0x1A)
    let mark = out.open()
    try message(pool.tables[field.type], pool)
    out.close(mark)
    out.append(0x0C)
  }

  private mutating func list(_ field: Field, _ pool: DescriptorPool) throws(JSONFault) {
    guard text.next == UInt8(ascii: "[") else { throw text.unexpected("an array") }
    let start = out.count
    var mark = 0
    if field.isPacked {
      out.varint(UInt64(field.tag & ~7 | 2))
      mark = out.open()
    }
    var index = 0
    var isFirst = true
    try text.open()
    while try text.next(&isFirst, until: UInt8(ascii: "]")) {
      do throws(JSONFault) {
        if text.next == UInt8(ascii: "n") && !field.takesNull {
          throw text.fault("null in an array")
        }
        _ = try value(field, pool, isTagged: !field.isPacked)
      } catch {
        throw error.at("[\(index)]")
      }
      index += 1
    }
    if !field.isPacked { return }
    if out.count == mark { out.truncate(to: start) } else { out.close(mark) }
  }

  // MARK: Maps

  private mutating func map(_ field: Field, _ pool: DescriptorPool) throws(JSONFault) {
    let entry = pool.tables[field.type]
    guard text.next == UInt8(ascii: "{"), let key = entry.key, let value = entry.value else {
      throw text.unexpected("an object")
    }
    try map(field.tag, key, value, pool)
  }

  /// Reads an object as the entries of a map.
  mutating func map(
    _ tag: UInt32, _ key: Field, _ value: Field, _ pool: DescriptorPool
  ) throws(JSONFault) {
    let first = keys.count
    var slots: [Int] = []
    var isFirst = true
    try text.open()
    while try text.next(&isFirst, until: UInt8(ascii: "}")) {
      let start = text.position
      let begin = out.count
      do throws(JSONFault) {
        out.varint(UInt64(tag))
        let mark = out.open()
        try self.key(key, at: start)
        var range = mark..<out.count
        try text.colon()
        if text.next == UInt8(ascii: "n") && !value.takesNull {
          throw text.fault("null in a map")
        }
        if try !self.value(value, pool) {
          out.truncate(to: begin)
          continue
        }
        let shift = out.close(mark)
        range = range.lowerBound + shift..<range.upperBound + shift
        guard insert(range, first, &slots) else {
          throw text.fault("the key is there twice", at: start)
        }
      } catch {
        throw error.at(text.step(at: start))
      }
    }
    keys.removeSubrange(first...)
  }

  /// Reads a member's name as a key.
  private mutating func key(_ field: Field, at start: Int) throws(JSONFault) {
    let name = try text.name()
    out.varint(UInt64(field.tag))
    switch field.kind {
    case .string: out.delimited(name)
    case .bool:
      if name.elementsEqual("true".utf8) {
        out.append(1)
      } else if name.elementsEqual("false".utf8) {
        out.append(0)
      } else {
        throw text.fault("expected true or false as a key", at: start)
      }
    default:
      // As if it were a string with a number in it.
      guard let number = try Self.quoted(name) else {
        throw text.fault("expected an integer as a key", at: start)
      }
      try integer(field, number, at: start, skipsDefault: false, isTagged: false)
    }
  }

  /// Notes where a map's key stands; false when the same one has been noted before.
  private mutating func insert(_ key: Range<Int>, _ first: Int, _ slots: inout [Int]) -> Bool {
    let bytes = out[key]
    let count = keys.count - first
    if count < 16 {
      for other in keys[first...] where Self.equal(bytes, out[other]) { return false }
    } else {
      if slots.count < 2 * count {
        slots = [Int](repeating: -1, count: 128)
        while slots.count < 4 * count { slots += slots }
        for index in first..<keys.count {
          slots[slot(of: out[keys[index]], slots)] = index
        }
      }
      let slot = slot(of: bytes, slots)
      if slots[slot] >= 0 { return false }
      slots[slot] = keys.count
    }
    keys.append(key)
    return true
  }

  /// Where a key is in a hash table, or is to be. Hashed with a secret: texts come from anybody.
  private func slot(of key: UnsafeRawBufferPointer, _ slots: [Int]) -> Int {
    var hasher = Hasher()
    hasher.combine(bytes: key)
    var slot = hasher.finalize() & (slots.count - 1)
    while slots[slot] >= 0, !Self.equal(key, out[keys[slots[slot]]]) {
      slot = (slot + 1) & (slots.count - 1)
    }
    return slot
  }

  private static func equal(
    _ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer
  ) -> Bool {
    guard left.count == right.count else { return false }
    for index in 0..<left.count where left[index] != right[index] { return false }
    return true
  }
}
