import VencejoDescriptors
import VencejoProtobuf

// Any.
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
}
