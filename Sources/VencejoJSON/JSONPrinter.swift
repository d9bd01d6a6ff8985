import VencejoDescriptors
import VencejoProtobuf

/// Writes JSON straight from wire format, by descriptor.
///
/// Fields must stand as encoders write them (see ``FieldCursor``). Where they do not, it gives
/// up with a fault that says so: then the message is decoded, encoded and written once more.
struct JSONPrinter: ~Copyable {
  typealias Field = FieldPlan

  let options: JSONOptions
  var out: ByteBuffer
  /// Open brackets.
  var depth = 0
  /// Messages within each other.
  var nesting = 0
  /// Whether what is read was written by us, so that the items of a `MessageSet` whose numbers are
  /// known are all of the usual form.
  var isInOrder = false
  /// Whether something was in disorder: then what an Any packs is brought in order at once. To try
  /// each as it comes would take twice as long for every Any within another.
  var isDisorderly = false

  init(_ options: JSONOptions, capacity: Int) {
    self.options = options
    out = ByteBuffer(capacity: capacity)
  }

  /// The JSON of an encoded message.
  static func print(
    _ bytes: [UInt8], as type: MessageDescriptor, _ options: JSONOptions
  ) throws(JSONFault) -> String {
    var printer = JSONPrinter(options, capacity: bytes.count + bytes.count / 2 + 256)
    try printer.print(bytes, as: type)
    return printer.out.string()
  }

  /// Writes a message, in the second attempt from bytes in order.
  private mutating func print(
    _ bytes: [UInt8], as type: MessageDescriptor
  ) throws(JSONFault) {
    guard let fault = attempt(bytes, type) else { return }
    guard fault.isDisorder else { throw fault }
    out.truncate(to: 0)
    depth = 0
    nesting = 0
    isInOrder = true
    isDisorderly = true
    if let fault = attempt(try Self.inOrder(bytes, type), type) { throw fault }
  }

  /// The same message, its fields in order.
  static func inOrder(
    _ bytes: [UInt8], _ type: MessageDescriptor
  ) throws(JSONFault) -> [UInt8] {
    do throws(DecodingError) {
      return try DynamicMessage(type, serializedBytes: bytes, partial: true)
        .serializedBytes(deterministic: true)
    } catch {
      throw JSONFault(message: "\(error)")
    }
  }

  private mutating func attempt(_ bytes: [UInt8], _ type: MessageDescriptor) -> JSONFault? {
    bytes.withUnsafeBytes { buffer in
      var reader = WireReader(buffer)
      // Of a dynamic message, which may nest deeper than the wire allows; messages are counted
      // here.
      reader.depthLeft = 4 * WireReader.maximumDepth
      do throws(JSONFault) {
        try message(type.table, type.pool, &reader)
        try Self.check(reader)
      } catch {
        return error
      }
      return nil
    }
  }

  static func check(_ reader: borrowing WireReader) throws(JSONFault) {
    if let error = reader.error { throw JSONFault(message: "\(error)") }
  }

  /// What to throw for a value without a JSON form. The same field may come again, and what it says
  /// then is what counts: only in order it is known that this is the last word.
  func unsayable(_ message: String) -> JSONFault {
    isInOrder ? JSONFault(message: message) : .disorder
  }

  // MARK: Messages

  /// Writes the reader's current message. Messages packed in Any begin to count anew on the
  /// wire, not here.
  mutating func message(
    _ type: MessageTable, _ pool: DescriptorPool, _ reader: inout WireReader
  ) throws(JSONFault) {
    guard nesting < WireReader.maximumDepth else { throw JSONFault(message: "nested too deeply") }
    nesting += 1
    if let wellKnown = type.wellKnown {
      try message(type, wellKnown, pool, &reader)
    } else {
      var list = open("{")
      try fields(type, pool, &reader, &list)
      close("}", list)
    }
    nesting -= 1
  }

  /// Writes a message behind its length.
  mutating func delimited(
    _ type: MessageTable, _ pool: DescriptorPool, _ reader: inout WireReader
  ) throws(JSONFault) {
    let outer = reader.enter()
    try message(type, pool, &reader)
    reader.leave(outer)
  }

  /// Writes the fields of the reader's current message as members.
  mutating func fields(
    _ type: MessageTable, _ pool: DescriptorPool, _ reader: inout WireReader, _ list: inout List
  ) throws(JSONFault) {
    var cursor = FieldCursor(type)
    var tag = reader.nextTag()
    while tag != 0 {
      if tag == 11 && type.isMessageSet {
        // Of the odd forms, decoding decides what they say.
        guard isInOrder else { throw .disorder }
        try item(type, pool, tag, &reader, &cursor, &list)
        tag = reader.nextTag()
        continue
      }
      guard let index = cursor.index(of: tag) else {
        reader.skip(tag)
        tag = reader.nextTag()
        continue
      }
      let field = type.ordered[index]
      if field.isRepeated {
        tag = try repeated(field, index, tag, type, pool, &reader, &cursor, &list)
      } else {
        try singular(field, index, tag, type, pool, &reader, &cursor, &list)
        tag = reader.nextTag()
      }
    }
    if options.defaults { defaults(type, pool, cursor.passed..<type.ordered.count, &list) }
  }

  /// Begins a field's member; a fault when it is not where it should be.
  private mutating func begin(
    _ field: Field, _ index: Int, _ type: MessageTable, _ pool: DescriptorPool,
    _ cursor: inout FieldCursor, _ list: inout List
  ) throws(JSONFault) {
    let passed = cursor.passed
    guard cursor.enter(index) else { throw .disorder }
    if options.defaults { defaults(type, pool, passed..<index, &list) }
    next(field, &list)
  }

  func name(_ field: Field) -> UnsafeRawBufferPointer {
    options.originalNames ? field.name : field.jsonName
  }

  func step(_ field: Field) -> String { "." + String(decoding: name(field), as: UTF8.self) }

  private mutating func singular(
    _ field: Field, _ index: Int, _ tag: UInt32, _ type: MessageTable, _ pool: DescriptorPool,
    _ reader: inout WireReader, _ cursor: inout FieldCursor, _ list: inout List
  ) throws(JSONFault) {
    var number: Int32 = 0
    if field.kind == .enum {
      number = reader.int32()
      // What a closed enum does not name is an unknown field.
      if field.isClosed && pool.enumTables[field.type].name(of: number) == nil { return }
    }
    let mark = out.count
    let before = list
    try begin(field, index, type, pool, &cursor, &list)
    do throws(JSONFault) {
      let isDefault: Bool
      if field.kind == .enum {
        enumeration(number, field, pool)
        isDefault = number == 0
      } else {
        isDefault = try value(field, tag, pool, &reader)
      }
      if isDefault && !field.hasPresence && !options.defaults {
        out.truncate(to: mark)
        list = before
      }
    } catch {
      throw error.at(step(field))
    }
  }

  /// Writes a list or map; returns the tag behind it.
  private mutating func repeated(
    _ field: Field, _ index: Int, _ first: UInt32, _ type: MessageTable, _ pool: DescriptorPool,
    _ reader: inout WireReader, _ cursor: inout FieldCursor, _ list: inout List
  ) throws(JSONFault) -> UInt32 {
    var tag = first
    if field.isMap {
      let entries = try mapEntries(field, pool, &tag, &reader)
      if entries.isEmpty { return tag }
      try begin(field, index, type, pool, &cursor, &list)
      do throws(JSONFault) {
        try map(entries, field, pool, &reader)
      } catch {
        throw error.at(step(field))
      }
      return tag
    }
    var elements: List?
    while tag >> 3 == first >> 3 {
      guard tag == field.tag || tag & 7 == 2 && field.isPackable else {
        reader.skip(tag)
        tag = reader.nextTag()
        continue
      }
      let isRun = tag & 7 == 2 && field.isPackable
      let outer = isRun ? reader.enterRun() : nil
      if isRun && elements == nil && !options.pretty && Self.isInteger(field.kind)
        && !reader.isAtEnd
      {
        try begin(field, index, type, pool, &cursor, &list)
        elements = open("[")
        elements?.count = integers(field.kind, &reader)
      }
      repeat {
        if isRun && reader.isAtEnd { break }
        var number: Int32 = 0
        if field.kind == .enum {
          number = reader.int32()
          if field.isClosed && pool.enumTables[field.type].name(of: number) == nil { continue }
        }
        if elements == nil {
          try begin(field, index, type, pool, &cursor, &list)
          elements = open("[")
        }
        next(&elements)
        if field.kind == .enum {
          enumeration(number, field, pool)
          continue
        }
        do throws(JSONFault) {
          _ = try value(field, tag, pool, &reader)
        } catch {
          let count = elements?.count ?? 1
          throw error.at("[\(count - 1)]").at(step(field))
        }
      } while isRun
      if let outer { reader.leaveRun(outer) }
      tag = reader.nextTag()
    }
    if let elements { close("]", elements) }
    return tag
  }

  /// An item of a `MessageSet`: a group with the extension's number (2) and the message (3).
  private mutating func item(
    _ type: MessageTable, _ pool: DescriptorPool, _ tag: UInt32, _ reader: inout WireReader,
    _ cursor: inout FieldCursor, _ list: inout List
  ) throws(JSONFault) {
    var number: UInt32?
    var bytes: UnsafeRawBufferPointer?
    let outer = reader.enterGroup(tag)
    while let tag = reader.itemTag() {
      switch tag {
      case 16 where number == nil: number = reader.uint32()
      case 26 where bytes == nil: bytes = reader.span()
      default: reader.skip(tag, inItem: true)
      }
    }
    reader.leaveGroup(outer)
    guard let number, let bytes, number < 1 << 29, let index = cursor.index(of: number << 3 | 2)
    else { return }
    let field = type.ordered[index]
    guard field.kind == .message, !field.isRepeated else { return }
    try begin(field, index, type, pool, &cursor, &list)
    do throws(JSONFault) {
      var inner = WireReader(bytes)
      inner.depthLeft = reader.depthLeft
      try message(pool.tables[field.type], pool, &inner)
      try Self.check(inner)
    } catch {
      throw error.at(step(field))
    }
  }
}
