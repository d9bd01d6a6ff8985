// What generated code writes messages, lists and maps with.
extension WireWriter {
  /// Writes a sub-message.
  @inlinable
  public mutating func message<M: Message>(_ tag: UInt32, _ value: M) {
    let mark = count
    value.encode(to: &self)
    delimit(tag, since: mark)
  }

  /// Writes a repeated message field.
  @inlinable
  public mutating func message<M: Message>(_ tag: UInt32, _ list: [M]) {
    Lent.forEachReversed(list) { message(tag, $0.value) }
  }

  /// Writes a group, the tag being its start tag.
  @inlinable
  public mutating func group<M: Message>(_ tag: UInt32, _ value: M) {
    varint(UInt64(tag) + 1)
    value.encode(to: &self)
    varint(UInt64(tag))
  }

  /// Writes a repeated group.
  @inlinable
  public mutating func group<M: Message>(_ tag: UInt32, _ list: [M]) {
    Lent.forEachReversed(list) { group(tag, $0.value) }
  }

  /// Writes a repeated field, a tag for each element.
  @inlinable
  public mutating func list<C: WireCoding>(_: C.Type, _ tag: UInt32, _ list: [C.Value]) {
    Lent.forEachReversed(list) { C.write(tag, $0.value, to: &self) }
  }

  /// Writes a repeated field packed into one run; nothing when it is empty.
  @inlinable
  public mutating func packed<C: WireCoding>(_: C.Type, _ tag: UInt32, _ list: [C.Value]) {
    if list.isEmpty { return }
    let mark = count
    if C.fixedWidth == 0 {
      for value in list.reversed() { C.write(value, to: &self) }
    } else {
      // The layout in memory is the wire's: all our targets are little-endian.
      list.withUnsafeBytes { raw($0) }
    }
    delimit(tag, since: mark)
  }

  /// Writes a repeated field of varints packed into one run; nothing when it is empty.
  @inlinable
  public mutating func packed<C: WireVarintCoding>(_: C.Type, _ tag: UInt32, _ list: [C.Value]) {
    if list.isEmpty { return }
    let mark = count
    list.withUnsafeBufferPointer { varints(C.self, $0) }
    delimit(tag, since: mark)
  }

  /// Writes a map, an entry for each key.
  @inlinable
  public mutating func map<K: WireKeyCoding, V: WireCoding>(
    _: K.Type, _: V.Type, _ tag: UInt32, _ map: [K.Value: V.Value]
  ) {
    if deterministic {
      for key in K.descending(Array(map.keys)) {
        if let value = map[key] { entry(K.self, V.self, tag, key, value) }
      }
    } else {
      for entry in map { self.entry(K.self, V.self, tag, entry.key, entry.value) }
    }
  }

  @inlinable
  mutating func entry<K: WireKeyCoding, V: WireCoding>(
    _: K.Type, _: V.Type, _ tag: UInt32, _ key: K.Value, _ value: V.Value
  ) {
    let mark = count
    V.write(16 | V.wireType, value, to: &self)
    K.write(8 | K.wireType, key, to: &self)
    delimit(tag, since: mark)
  }
}
