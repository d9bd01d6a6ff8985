/// How the values of one protobuf type are read and written in lists and maps.
public protocol WireCoding: SendableMetatype {
  /// The values in Swift.
  associatedtype Value: Hashable, Sendable
  /// The wire type of a single value.
  static var wireType: UInt32 { get }
  /// The size of each value in bytes when it is always the same, or 0.
  static var fixedWidth: Int { get }
  /// The default value.
  static var initial: Value { get }
  /// Reads a value without its tag; sub-messages are merged.
  static func read(from reader: inout WireReader, into value: inout Value)
  /// Writes a value without its tag.
  static func write(_ value: Value, to writer: inout WireWriter)
  /// Writes a value and its tag.
  static func write(_ tag: Swift.UInt32, _ value: Value, to writer: inout WireWriter)
}

extension WireCoding {
  @inlinable
  public static var fixedWidth: Int { 0 }
  @inlinable
  public static func write(_ tag: UInt32, _ value: Value, to writer: inout WireWriter) {
    write(value, to: &writer)
    writer.varint(UInt64(tag))
  }
}

/// The types whose values are varints.
public protocol WireVarintCoding: WireCoding {
  /// What stands on the wire.
  static func bits(of value: Value) -> UInt64
  /// What a varint means.
  static func value(of bits: UInt64) -> Value
}

extension WireVarintCoding {
  @inlinable
  public static var wireType: UInt32 { 0 }
  @inlinable
  public static func read(from reader: inout WireReader, into value: inout Value) {
    value = Self.value(of: reader.uint64())
  }
  @inlinable
  public static func write(_ value: Value, to writer: inout WireWriter) {
    writer.varint(bits(of: value))
  }
  @inlinable
  public static func write(_ tag: UInt32, _ value: Value, to writer: inout WireWriter) {
    writer.varint(tag, bits(of: value))
  }
}

/// The types that can be keys of maps.
public protocol WireKeyCoding: WireCoding {
  /// Sorts keys for deterministic encodings, the last one first.
  static func descending(_ keys: [Value]) -> [Value]
  /// Whether a dictionary's key that equals this one is this one.
  static func replaces<V>(_ key: Value, in map: [Value: V]) -> Bool
}

extension WireKeyCoding {
  @inlinable
  public static func replaces<V>(_ key: Value, in map: [Value: V]) -> Bool { true }
}

extension WireKeyCoding where Value == String {
  @inlinable
  public static func replaces<V>(_ key: String, in map: [String: V]) -> Bool {
    guard let index = map.index(forKey: key) else { return true }
    return map.keys[index].utf8.elementsEqual(key.utf8)
  }
}

extension WireKeyCoding where Value == String {
  // Bytes, not characters: `<` would call canonically equivalent strings equal.
  public static func descending(_ keys: [String]) -> [String] {
    keys.sorted { $1.utf8.lexicographicallyPrecedes($0.utf8) }
  }
}

// Not inlinable: a sort is code of kilobytes. One does for the numbers of all types.
private func descending(_ numbers: [Int64]) -> [Int64] { numbers.sorted(by: >) }

extension WireKeyCoding where Value == Int32 {
  public static func descending(_ keys: [Int32]) -> [Int32] {
    VencejoProtobuf.descending(keys.map { Int64($0) }).map { Int32(truncatingIfNeeded: $0) }
  }
}
extension WireKeyCoding where Value == Int64 {
  public static func descending(_ keys: [Int64]) -> [Int64] { VencejoProtobuf.descending(keys) }
}
extension WireKeyCoding where Value == UInt32 {
  public static func descending(_ keys: [UInt32]) -> [UInt32] {
    VencejoProtobuf.descending(keys.map { Int64($0) }).map { UInt32(truncatingIfNeeded: $0) }
  }
}
extension WireKeyCoding where Value == UInt64 {
  public static func descending(_ keys: [UInt64]) -> [UInt64] {
    // With the highest bit turned over they are in the same order as signed numbers.
    let flip: UInt64 = 1 << 63
    return VencejoProtobuf.descending(keys.map { Int64(bitPattern: $0 ^ flip) })
      .map { UInt64(bitPattern: $0) ^ flip }
  }
}
extension WireKeyCoding where Value == Bool {
  public static func descending(_ keys: [Bool]) -> [Bool] {
    VencejoProtobuf.descending(keys.map { $0 ? 1 : 0 }).map { $0 != 0 }
  }
}

/// One ``WireCoding`` per protobuf type.
public enum Wire {
  /// `int32`.
  public enum Int32: WireKeyCoding, WireVarintCoding {
    @inlinable
    public static var initial: Swift.Int32 { 0 }
    @inlinable
    public static func bits(of value: Swift.Int32) -> Swift.UInt64 {
      Swift.UInt64(bitPattern: Swift.Int64(value))
    }
    @inlinable
    public static func value(of bits: Swift.UInt64) -> Swift.Int32 {
      Swift.Int32(truncatingIfNeeded: bits)
    }
  }

  /// `int64`.
  public enum Int64: WireKeyCoding, WireVarintCoding {
    @inlinable
    public static var initial: Swift.Int64 { 0 }
    @inlinable
    public static func bits(of value: Swift.Int64) -> Swift.UInt64 {
      Swift.UInt64(bitPattern: value)
    }
    @inlinable
    public static func value(of bits: Swift.UInt64) -> Swift.Int64 { Swift.Int64(bitPattern: bits) }
  }

  /// `uint32`.
  public enum UInt32: WireKeyCoding, WireVarintCoding {
    @inlinable
    public static var initial: Swift.UInt32 { 0 }
    @inlinable
    public static func bits(of value: Swift.UInt32) -> Swift.UInt64 { Swift.UInt64(value) }
    @inlinable
    public static func value(of bits: Swift.UInt64) -> Swift.UInt32 {
      Swift.UInt32(truncatingIfNeeded: bits)
    }
  }

  /// `uint64`.
  public enum UInt64: WireKeyCoding, WireVarintCoding {
    @inlinable
    public static var initial: Swift.UInt64 { 0 }
    @inlinable
    public static func bits(of value: Swift.UInt64) -> Swift.UInt64 { value }
    @inlinable
    public static func value(of bits: Swift.UInt64) -> Swift.UInt64 { bits }
  }

  /// `sint32`.
  public enum SInt32: WireKeyCoding, WireVarintCoding {
    @inlinable
    public static var initial: Swift.Int32 { 0 }
    @inlinable
    public static func bits(of value: Swift.Int32) -> Swift.UInt64 {
      Swift.UInt64(Swift.UInt32(bitPattern: (value << 1) ^ (value >> 31)))
    }
    @inlinable
    public static func value(of bits: Swift.UInt64) -> Swift.Int32 {
      let low = Swift.UInt32(truncatingIfNeeded: bits)
      return Swift.Int32(bitPattern: low >> 1) ^ -Swift.Int32(bitPattern: low & 1)
    }
  }

  /// `sint64`.
  public enum SInt64: WireKeyCoding, WireVarintCoding {
    @inlinable
    public static var initial: Swift.Int64 { 0 }
    @inlinable
    public static func bits(of value: Swift.Int64) -> Swift.UInt64 {
      Swift.UInt64(bitPattern: (value << 1) ^ (value >> 63))
    }
    @inlinable
    public static func value(of bits: Swift.UInt64) -> Swift.Int64 {
      Swift.Int64(bitPattern: bits >> 1) ^ -Swift.Int64(bitPattern: bits & 1)
    }
  }

  /// `fixed32`.
  public enum FixedUInt32: WireKeyCoding {
    @inlinable
    public static var wireType: Swift.UInt32 { 5 }
    @inlinable
    public static var fixedWidth: Int { 4 }
    @inlinable
    public static var initial: Swift.UInt32 { 0 }
    @inlinable
    public static func read(from reader: inout WireReader, into value: inout Swift.UInt32) {
      value = reader.fixedUInt32()
    }
    @inlinable
    public static func write(_ value: Swift.UInt32, to writer: inout WireWriter) {
      writer.fixed32(value)
    }
  }

  /// `fixed64`.
  public enum FixedUInt64: WireKeyCoding {
    @inlinable
    public static var wireType: Swift.UInt32 { 1 }
    @inlinable
    public static var fixedWidth: Int { 8 }
    @inlinable
    public static var initial: Swift.UInt64 { 0 }
    @inlinable
    public static func read(from reader: inout WireReader, into value: inout Swift.UInt64) {
      value = reader.fixedUInt64()
    }
    @inlinable
    public static func write(_ value: Swift.UInt64, to writer: inout WireWriter) {
      writer.fixed64(value)
    }
  }

  /// `sfixed32`.
  public enum FixedInt32: WireKeyCoding {
    @inlinable
    public static var wireType: Swift.UInt32 { 5 }
    @inlinable
    public static var fixedWidth: Int { 4 }
    @inlinable
    public static var initial: Swift.Int32 { 0 }
    @inlinable
    public static func read(from reader: inout WireReader, into value: inout Swift.Int32) {
      value = reader.fixedInt32()
    }
    @inlinable
    public static func write(_ value: Swift.Int32, to writer: inout WireWriter) {
      writer.fixed32(Swift.UInt32(bitPattern: value))
    }
  }

  /// `sfixed64`.
  public enum FixedInt64: WireKeyCoding {
    @inlinable
    public static var wireType: Swift.UInt32 { 1 }
    @inlinable
    public static var fixedWidth: Int { 8 }
    @inlinable
    public static var initial: Swift.Int64 { 0 }
    @inlinable
    public static func read(from reader: inout WireReader, into value: inout Swift.Int64) {
      value = reader.fixedInt64()
    }
    @inlinable
    public static func write(_ value: Swift.Int64, to writer: inout WireWriter) {
      writer.fixed64(Swift.UInt64(bitPattern: value))
    }
  }

  /// `bool`.
  public enum Bool: WireKeyCoding, WireVarintCoding {
    @inlinable
    public static var initial: Swift.Bool { false }
    @inlinable
    public static func bits(of value: Swift.Bool) -> Swift.UInt64 { value ? 1 : 0 }
    @inlinable
    public static func value(of bits: Swift.UInt64) -> Swift.Bool { bits != 0 }
  }

  /// `float`.
  public enum Float: WireCoding {
    @inlinable
    public static var wireType: Swift.UInt32 { 5 }
    @inlinable
    public static var fixedWidth: Int { 4 }
    @inlinable
    public static var initial: Swift.Float { 0 }
    @inlinable
    public static func read(from reader: inout WireReader, into value: inout Swift.Float) {
      value = reader.float()
    }
    @inlinable
    public static func write(_ value: Swift.Float, to writer: inout WireWriter) {
      writer.fixed32(value.bitPattern)
    }
  }

  /// `double`.
  public enum Double: WireCoding {
    @inlinable
    public static var wireType: Swift.UInt32 { 1 }
    @inlinable
    public static var fixedWidth: Int { 8 }
    @inlinable
    public static var initial: Swift.Double { 0 }
    @inlinable
    public static func read(from reader: inout WireReader, into value: inout Swift.Double) {
      value = reader.double()
    }
    @inlinable
    public static func write(_ value: Swift.Double, to writer: inout WireWriter) {
      writer.fixed64(value.bitPattern)
    }
  }

  /// `string`.
  public enum String: WireKeyCoding {
    @inlinable
    public static var wireType: Swift.UInt32 { 2 }
    @inlinable
    public static var initial: Swift.String { "" }
    @inlinable
    public static func read(from reader: inout WireReader, into value: inout Swift.String) {
      value = reader.string()
    }
    @inlinable
    public static func write(_ value: Swift.String, to writer: inout WireWriter) {
      writer.string(value)
    }
    @inlinable
    public static func write(
      _ tag: Swift.UInt32, _ value: Swift.String, to writer: inout WireWriter
    ) { writer.string(tag, value) }
  }

  /// A `string` whose UTF-8 nobody checks.
  public enum LooseString: WireKeyCoding {
    @inlinable
    public static var wireType: Swift.UInt32 { 2 }
    @inlinable
    public static var initial: Swift.String { "" }
    @inlinable
    public static func read(from reader: inout WireReader, into value: inout Swift.String) {
      value = reader.looseString() ?? value
    }
    @inlinable
    public static func write(_ value: Swift.String, to writer: inout WireWriter) {
      writer.string(value)
    }
    @inlinable
    public static func write(
      _ tag: Swift.UInt32, _ value: Swift.String, to writer: inout WireWriter
    ) { writer.string(tag, value) }
  }

  /// `bytes`.
  public enum Bytes: WireCoding {
    @inlinable
    public static var wireType: Swift.UInt32 { 2 }
    @inlinable
    public static var initial: [Swift.UInt8] { [] }
    @inlinable
    public static func read(from reader: inout WireReader, into value: inout [Swift.UInt8]) {
      value = reader.bytes()
    }
    @inlinable
    public static func write(_ value: [Swift.UInt8], to writer: inout WireWriter) {
      writer.bytes(value)
    }
    @inlinable
    public static func write(
      _ tag: Swift.UInt32, _ value: [Swift.UInt8], to writer: inout WireWriter
    ) { writer.bytes(tag, value) }
  }

  /// An enum.
  public enum Enum<E: Enumeration>: WireVarintCoding {
    @inlinable
    public static var initial: E { E(rawValue: 0) }
    @inlinable
    public static func bits(of value: E) -> Swift.UInt64 {
      Swift.UInt64(bitPattern: Swift.Int64(value.rawValue))
    }
    @inlinable
    public static func value(of bits: Swift.UInt64) -> E {
      E(rawValue: Swift.Int32(truncatingIfNeeded: bits))
    }
  }

  /// A closed enum.
  public enum ClosedEnum<E: ClosedEnumeration>: WireCoding {
    @inlinable
    public static var wireType: Swift.UInt32 { 0 }
    @inlinable
    public static var initial: E { E.defaultValue }
    @inlinable
    public static func read(from reader: inout WireReader, into value: inout E) {
      let number = reader.int32()
      value = E(rawValue: number)
      if !E.isKnown(number) { reader.refused = true }
    }
    @inlinable
    public static func write(_ value: E, to writer: inout WireWriter) {
      writer.varint(Swift.UInt64(bitPattern: Swift.Int64(value.rawValue)))
    }
  }

  /// A message.
  public enum Submessage<M: Message>: WireCoding {
    @inlinable
    public static var wireType: Swift.UInt32 { 2 }
    @inlinable
    public static var initial: M { M() }
    @inlinable
    public static func read(from reader: inout WireReader, into value: inout M) {
      reader.message(into: &value)
    }
    @inlinable
    public static func write(_ value: M, to writer: inout WireWriter) {
      let mark = writer.count
      value.encode(to: &writer)
      writer.delimit(since: mark)
    }
    @inlinable
    public static func write(_ tag: Swift.UInt32, _ value: M, to writer: inout WireWriter) {
      writer.message(tag, value)
    }
  }
}
