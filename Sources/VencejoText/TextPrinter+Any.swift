import VencejoDescriptors
import VencejoProtobuf

// Any, and the items of a MessageSet.
extension TextPrinter {
  /// Writes an `Any` as the message within, when its type is known and it can be read.
  mutating func any(
    _ type: MessageTable, _ pool: DescriptorPool, _ reader: inout WireReader
  ) throws(Fault) {
    var url = UnsafeRawBufferPointer(start: nil, count: 0)
    var content = url
    var nameless: [Nameless] = []
    while true {
      let tag = reader.nextTag()
      if tag == 0 { break }
      switch tag {
      case 10: url = reader.span()
      case 18: content = reader.span()
      default: skip(tag, &reader, &nameless)
      }
    }
    try Self.check(reader)
    guard url.isUTF8 else { throw .malformed("not UTF-8") }
    if nameless.isEmpty, try expanded(url, content, pool) { return }
    if !url.isEmpty {
      begin(type.ordered[0].textName)
      quote(url, keepingUTF8: true)
      end()
    }
    if !content.isEmpty {
      begin(type.ordered[1].textName)
      quote(content, keepingUTF8: false)
      end()
    }
    write(nameless)
  }

  /// False, and nothing is written, when that cannot be had.
  private mutating func expanded(
    _ url: UnsafeRawBufferPointer, _ content: UnsafeRawBufferPointer, _ pool: DescriptorPool
  ) throws(Fault) -> Bool {
    let name = String(decoding: url, as: UTF8.self)
    // What nests deeper than the wire allows is left packed.
    guard depth < WireReader.maximumDepth,
      let packed = DescriptorPool.packedType(name, near: pool, types: options.types)
    else { return false }
    let before = mark
    open("[\(name)]")
    var inner = WireReader(content)
    do throws(Fault) {
      try message(packed.table, packed.pool, &inner)
      try Self.check(inner)
    } catch {
      if case .disorder = error { throw error }
      goBack(to: before)
      return false
    }
    close()
    return true
  }

  /// An item of a `MessageSet`: a group with the extension's number (2) and the message (3).
  mutating func item(
    _ type: MessageTable, _ pool: DescriptorPool, _ tag: UInt32, _ reader: inout WireReader,
    _ cursor: inout FieldCursor, _ nameless: inout [Nameless]
  ) throws(Fault) {
    let start = reader.fieldStart
    var number: UInt32?
    var bytes: UnsafeRawBufferPointer?
    let outer = reader.enterGroup(tag)
    while let tag = reader.itemTag() {
      switch tag {
      case 16 where number == nil: number = reader.uint32()
      case 26:
        if bytes != nil { throw .disorder }
        bytes = reader.span()
      default: reader.skip(tag, inItem: true)
      }
    }
    reader.leaveGroup(outer)
    guard let number, let bytes, number < 1 << 29, let index = cursor.index(of: number << 3 | 2),
      type.ordered[index].kind == .message, !type.ordered[index].isRepeated
    else { return nameless.append(.field(Self.span(from: start, reader))) }
    try enter(index, &cursor)
    open(type.ordered[index].textName)
    var inner = WireReader(bytes)
    // The group and the message in it.
    inner.depthLeft = reader.depthLeft - 2
    try message(pool.tables[type.ordered[index].type], pool, &inner)
    try Self.check(inner)
    close()
  }
}
