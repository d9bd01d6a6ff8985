/// A field that other files add to a message. Generated as a static property, to be used in
/// brackets: `options[Billing.price] = 5`.
///
/// Extensions stay among the message's unknown fields, byte for byte, until they are asked
/// for: so no program carries code for extensions it does not use.
public struct ExtensionField<Extended: Message, Value: Sendable>: Sendable {
  /// The field's number.
  public let number: Int32
  /// The full protobuf name, for example `billing.price`.
  public let fullName: String
  /// What the field reads as when it is not there: nil or the default the file gives, and an
  /// empty list.
  public let defaultValue: Value

  /// Whether fields stand in the items of a `MessageSet`.
  private var isMessageSet = false
  /// What nothing has been read into yet.
  private let initial: Value
  /// Reads a field into the value, unless its wire type is another's: then it is skipped.
  private let read: @Sendable (inout WireReader, UInt32, inout Value) -> Void
  private let write: @Sendable (Value, inout WireWriter) -> Void
  /// Of messages: the path of the first required field that is not set, from the value on.
  private var missing: @Sendable (Value) -> String? = { _ in nil }

  private init(
    _ number: Int32, _ fullName: String, initial: Value, defaultValue: Value? = nil,
    read: @escaping @Sendable (inout WireReader, UInt32, inout Value) -> Void,
    write: @escaping @Sendable (Value, inout WireWriter) -> Void
  ) {
    self.number = number
    self.fullName = fullName
    self.initial = initial
    self.defaultValue = defaultValue ?? initial
    self.read = read
    self.write = write
  }
}

// How generated code makes them.
extension ExtensionField {
  /// A singular scalar, enum or string.
  public static func optional<C: WireCoding>(
    _: C.Type, _ number: Int32, _ fullName: String, default defaultValue: C.Value? = nil
  ) -> Self where Value == C.Value? {
    let tag = UInt32(bitPattern: number) << 3 | C.wireType
    return Self(number, fullName, initial: nil, defaultValue: .some(defaultValue)) {
      reader, found, value in
      guard found == tag else { return reader.skip(found) }
      var new = C.initial
      C.read(from: &reader, into: &new)
      if !reader.takeRefusal() { value = new }
    } write: { value, writer in
      guard let value else { return }
      C.write(value, to: &writer)
      writer.varint(UInt64(tag))
    }
  }

  /// A repeated scalar, enum or string.
  public static func repeated<C: WireCoding>(
    _: C.Type, _ number: Int32, _ fullName: String, packed: Bool
  ) -> Self where Value == [C.Value] {
    let field = UInt32(bitPattern: number) << 3
    return Self(number, fullName, initial: []) { reader, found, value in
      guard found == field | C.wireType || found == field | 2 else { return reader.skip(found) }
      guard found & 7 == 2 && C.wireType != 2 else {
        var new = C.initial
        C.read(from: &reader, into: &new)
        if !reader.takeRefusal() { value.append(new) }
        return
      }
      let outer = reader.enterRun()
      while !reader.isAtEnd {
        var new = C.initial
        C.read(from: &reader, into: &new)
        if !reader.takeRefusal() { value.append(new) }
      }
      reader.leaveRun(outer)
    } write: { value, writer in
      if packed {
        writer.packed(C.self, field | 2, value)
      } else {
        writer.list(C.self, field | C.wireType, value)
      }
    }
  }

  /// A singular message.
  public static func message<M: Message>(
    _: M.Type, _ number: Int32, _ fullName: String
  ) -> Self where Value == M? {
    let tag = UInt32(bitPattern: number) << 3 | 2
    var field = Self(number, fullName, initial: nil) { reader, found, value in
      if found == tag { reader.message(into: &value) } else { reader.skip(found) }
    } write: { value, writer in
      if let value { writer.message(tag, value) }
    }
    field.missing = { $0?.missingRequiredField.map { ".\($0)" } }
    return field
  }

  /// A repeated message.
  public static func messages<M: Message>(
    _: M.Type, _ number: Int32, _ fullName: String
  ) -> Self where Value == [M] {
    let tag = UInt32(bitPattern: number) << 3 | 2
    var field = Self(number, fullName, initial: []) { reader, found, value in
      if found == tag { reader.message(into: &value) } else { reader.skip(found) }
    } write: { value, writer in
      writer.message(tag, value)
    }
    field.missing = { Required.missing(in: $0, "") }
    return field
  }

  /// A singular group.
  public static func group<M: Message>(
    _: M.Type, _ number: Int32, _ fullName: String
  ) -> Self where Value == M? {
    let tag = UInt32(bitPattern: number) << 3 | 3
    var field = Self(number, fullName, initial: nil) { reader, found, value in
      if found == tag { reader.group(tag, into: &value) } else { reader.skip(found) }
    } write: { value, writer in
      if let value { writer.group(tag, value) }
    }
    field.missing = { $0?.missingRequiredField.map { ".\($0)" } }
    return field
  }

  /// A repeated group.
  public static func groups<M: Message>(
    _: M.Type, _ number: Int32, _ fullName: String
  ) -> Self where Value == [M] {
    let tag = UInt32(bitPattern: number) << 3 | 3
    var field = Self(number, fullName, initial: []) { reader, found, value in
      if found == tag { reader.group(tag, into: &value) } else { reader.skip(found) }
    } write: { value, writer in
      writer.group(tag, value)
    }
    field.missing = { Required.missing(in: $0, "") }
    return field
  }

  /// A message in a `MessageSet`: a group numbered 1 with the extension's number (2) and the
  /// message (3).
  public static func messageSet<M: Message>(
    _: M.Type, _ number: Int32, _ fullName: String
  ) -> Self where Value == M? {
    // 26 in an item; as in other messages from writers who do not know of the set.
    let plain = UInt32(bitPattern: number) << 3 | 2
    var field = Self(number, fullName, initial: nil) { reader, found, value in
      if found == 26 || found == plain { reader.message(into: &value) } else { reader.skip(found) }
    } write: { value, writer in
      guard let value else { return }
      writer.varint(12)
      writer.message(26, value)
      writer.int32(16, number)
      writer.varint(11)
    }
    field.isMessageSet = true
    field.missing = { $0?.missingRequiredField.map { ".\($0)" } }
    return field
  }

  // MARK: Access

  /// Calls with each field of the extension, the reader behind its tag; the body must read its
  /// value. For a message in a `MessageSet` the reader is before the item's message.
  fileprivate func forEach(
    in fields: UnknownFields, _ body: (inout WireReader, UInt32) -> Void,
    other: (UnsafeRawBufferPointer) -> Void = { _ in }
  ) -> DecodingError? {
    fields.bytes.withUnsafeBytes { bytes in
      var reader = WireReader(bytes)
      while true {
        let tag = reader.nextTag()
        if tag == 0 { return reader.error }
        let start = reader.fieldStart
        if isMessageSet, tag == 11 {
          var found = false
          reader.item { reader, number in
            found = number == self.number
            if found { body(&reader, 26) } else { reader.skip(26) }
          }
          if found { continue }
        } else if Int32(bitPattern: tag >> 3) == number {
          body(&reader, tag)
          continue
        } else {
          reader.skip(tag)
        }
        if reader.error == nil { other(.init(start: start, count: reader.position - start)) }
      }
    }
  }

  fileprivate func value(in fields: UnknownFields) throws(DecodingError) -> Value {
    var value = initial
    let error = forEach(in: fields) { reader, tag in read(&reader, tag, &value) }
    if let error { throw error }
    return value
  }

  /// The path of the first required field that is not set in the extension; nil also when it is
  /// malformed.
  fileprivate func missing(in fields: UnknownFields) -> String? {
    if fields.isEmpty { return nil }
    guard let value = try? value(in: fields) else { return nil }
    return missing(value).map { "[\(fullName)]\($0)" }
  }

  fileprivate func set(_ value: Value, in fields: inout UnknownFields) {
    var rest = UnknownFields()
    let error = forEach(in: fields) {
      $0.skip($1)
    } other: {
      rest.append($0)
    }
    // Unknown fields have been read before: they are well-formed.
    if error == nil { fields = rest }
    var writer = WireWriter()
    write(value, &writer)
    writer.bytes().withUnsafeBytes { fields.append($0) }
  }
}

// For generated code, whose messages check the extensions of their own file.
extension WireReader {
  /// Reads the field of an extension whose tag was just read, to find out whether it is
  /// well-formed.
  public mutating func check<Extended, Value>(
    _ field: ExtensionField<Extended, Value>, _ tag: UInt32
  ) { field.check(&self, tag) }

  /// Checks the field of an extension and keeps it.
  public mutating func known<Extended, Value>(
    _ field: ExtensionField<Extended, Value>, _ tag: UInt32, into fields: inout UnknownFields
  ) {
    let start = fieldStart
    field.check(&self, tag)
    // What is kept as it came is nothing that a map entry after it could not hold.
    refused = false
    keep(from: start, in: &fields)
  }

  /// Keeps the item of a `MessageSet` whose start tag was just read. The body reads its message,
  /// knowing the number of the extension.
  public mutating func messageSetItem(
    into fields: inout UnknownFields, _ body: (inout WireReader, Int32) -> Void
  ) {
    let start = fieldStart
    item(body)
    keep(from: start, in: &fields)
  }

  /// Reads an item of a `MessageSet`, a group with the extension's number (2) and the message
  /// (3), in either order; of each the first counts. The body reads the message.
  package mutating func item(_ body: (inout WireReader, Int32) -> Void) {
    var number: Int32?
    var early: UnsafeRawPointer?
    var isRead = false
    let outer = enterGroup(11)
    while let tag = itemTag() {
      switch tag {
      case 16: if number == nil { number = int32() } else { skip(16) }
      case 26 where isRead || early != nil: skip(26)
      case 26:
        if let number {
          isRead = true
          body(&self, number)
        } else {
          early = position
          skip(26)
        }
      default: skip(tag, inItem: true)
      }
    }
    let last = position
    leaveGroup(outer)
    // The message came first: back to it, now that its type is known.
    guard error == nil, let number, let early, !isRead else { return }
    position = early
    if depthLeft > 0 {
      depthLeft -= 1
      body(&self, number)
      if error == nil { depthLeft += 1 }
    } else {
      fail(.depthExceeded)
    }
    if error == nil { position = last }
  }
}

extension ExtensionField {
  fileprivate func check(_ reader: inout WireReader, _ tag: UInt32) {
    var value = initial
    read(&reader, tag, &value)
  }
}

extension Message {
  /// The value of an extension: its default when it is not there or malformed. Setting it
  /// to nil or an empty list removes it.
  public subscript<Value>(_ field: ExtensionField<Self, Value>) -> Value {
    get {
      has(field) ? (try? field.value(in: unknownFields)) ?? field.defaultValue : field.defaultValue
    }
    set { field.set(newValue, in: &unknownFields) }
  }

  /// The value of an extension, nil or empty when it is not there. Throws when it is malformed or
  /// lacks a required field: decoding the message did not look into it, unless the same file
  /// declares it.
  public func value<Value>(
    of field: ExtensionField<Self, Value>
  ) throws(DecodingError) -> Value {
    if let path = Required.missing(in: self, field) {
      throw DecodingError(kind: .missingRequired, offset: 0, path: path)
    }
    return try field.value(in: unknownFields)
  }

  /// Whether an extension is there.
  public func has<Value>(_ field: ExtensionField<Self, Value>) -> Bool {
    var found = false
    _ = field.forEach(in: unknownFields) {
      found = true
      $0.skip($1)
    }
    return found
  }
}

extension Required {
  /// In an extension.
  public static func missing<M: Message, Value>(
    in message: M, _ field: ExtensionField<M, Value>
  ) -> String? { field.missing(in: message.unknownFields) }
}
