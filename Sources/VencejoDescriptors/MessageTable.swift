package import VencejoProtobuf

/// What is looked up of a field while messages are read or written: an address, so that passing
/// it on costs nothing.
//
// @unchecked: what it points to belongs to the message's table and does not change.
@frozen
package struct FieldPlan: @unchecked Sendable {
  @usableFromInline
  struct Content {
    @usableFromInline let number: Int32
    @usableFromInline let tag: UInt32
    @usableFromInline let kind: Google.FieldDescriptorProto.TypeEnum
    @usableFromInline let type: Int
    @usableFromInline let oneof: Int
    @usableFromInline let isRepeated: Bool
    @usableFromInline let isMap: Bool
    @usableFromInline let isPacked: Bool
    @usableFromInline let isPackable: Bool
    @usableFromInline let hasPresence: Bool
    @usableFromInline let isGroup: Bool
    @usableFromInline let isExtension: Bool
    @usableFromInline let checksUTF8: Bool
    @usableFromInline let isClosed: Bool
    @usableFromInline let takesNull: Bool
    @usableFromInline let name: UnsafeRawBufferPointer
    @usableFromInline let jsonName: UnsafeRawBufferPointer
    @usableFromInline let textName: UnsafeRawBufferPointer
    @usableFromInline let member: UnsafeRawBufferPointer
    @usableFromInline let jsonMember: UnsafeRawBufferPointer
  }

  @usableFromInline let content: UnsafePointer<Content>

  @inlinable package var number: Int32 { content.pointee.number }
  @inlinable package var tag: UInt32 { content.pointee.tag }
  /// Messages and groups are both messages.
  @inlinable package var kind: Google.FieldDescriptorProto.TypeEnum { content.pointee.kind }
  /// The index of the message or enum in the pool's tables.
  @inlinable package var type: Int { content.pointee.type }
  /// -1 for none.
  @inlinable package var oneof: Int { content.pointee.oneof }
  @inlinable package var isRepeated: Bool { content.pointee.isRepeated }
  @inlinable package var isMap: Bool { content.pointee.isMap }
  @inlinable package var isPacked: Bool { content.pointee.isPacked }
  @inlinable package var isPackable: Bool { content.pointee.isPackable }
  @inlinable package var hasPresence: Bool { content.pointee.hasPresence }
  @inlinable package var isGroup: Bool { content.pointee.isGroup }
  @inlinable package var isExtension: Bool { content.pointee.isExtension }
  @inlinable package var checksUTF8: Bool { content.pointee.checksUTF8 }
  /// Whether the type takes no number it does not name.
  @inlinable package var isClosed: Bool { content.pointee.isClosed }
  /// Whether null is a value of the type, in JSON: of `Value` and `NullValue`.
  @inlinable package var takesNull: Bool { content.pointee.takesNull }
  /// Valid as long as the pool is, like the others.
  @inlinable package var name: UnsafeRawBufferPointer { content.pointee.name }
  @inlinable package var jsonName: UnsafeRawBufferPointer { content.pointee.jsonName }
  @inlinable package var textName: UnsafeRawBufferPointer { content.pointee.textName }
  /// The name in quotes, and a colon: how a member begins in JSON. Empty when the name has
  /// characters that JSON escapes.
  @inlinable package var member: UnsafeRawBufferPointer { content.pointee.member }
  @inlinable package var jsonMember: UnsafeRawBufferPointer { content.pointee.jsonMember }
}

extension FieldPlan.Content {
  fileprivate init(
    _ info: DescriptorPool.FieldInfo, name: UnsafeRawBufferPointer,
    jsonName: UnsafeRawBufferPointer, textName: UnsafeRawBufferPointer,
    member: UnsafeRawBufferPointer, jsonMember: UnsafeRawBufferPointer
  ) {
    self.init(
      number: info.number, tag: info.tag, kind: info.kind, type: info.type,
      // Extensions belong to none.
      oneof: info.isExtension ? -1 : info.oneof.map { Int($0) } ?? -1,
      isRepeated: info.isRepeated, isMap: info.isMap, isPacked: info.isPacked,
      isPackable: info.isPackable, hasPresence: info.hasPresence, isGroup: info.isGroup,
      isExtension: info.isExtension, checksUTF8: info.checksUTF8, isClosed: info.isClosed,
      takesNull: info.takesNull, name: name, jsonName: jsonName, textName: textName,
      member: member, jsonMember: jsonMember)
  }
}

/// What is looked up of a message's type while messages are read or written.
//
// @unchecked: nothing changes after `init`.
package final class MessageTable: @unchecked Sendable {
  package let fullName: String
  package let wellKnown: WellKnown?
  package let isMessageSet: Bool
  /// Fields and extensions by number, as they stand on the wire.
  package let ordered: UnsafeMutableBufferPointer<FieldPlan>
  private let contents: UnsafeMutableBufferPointer<FieldPlan.Content>
  /// Of a map's entry.
  package let key: FieldPlan?
  package let value: FieldPlan?
  /// Two for each field of `ordered`: the file's and JSON's.
  private let spellings: NameTable
  /// Two for each field of `ordered`: the file's and text format's.
  private let textSpellings: NameTable
  /// Two for each field of `ordered`: the file's and JSON's, as members begin.
  private let members: NameTable
  /// The index in `ordered` of the field that is next in the file, to guess with.
  private let following: UnsafeMutableBufferPointer<Int>

  init(_ info: DescriptorPool.MessageInfo) {
    fullName = info.fullName
    wellKnown = info.wellKnown
    isMessageSet = info.isMessageSet
    let fields = info.byNumber.values.sorted { $0.number < $1.number }
    let spellings = NameTable(fields.flatMap { [$0.name, $0.jsonName] })
    let textSpellings = NameTable(fields.flatMap { [$0.name, $0.textName] })
    let members = NameTable(
      fields.flatMap { [$0.name, $0.jsonName] }.map { isPlain($0) ? "\"\($0)\":" : "" })
    self.members = members
    self.spellings = spellings
    self.textSpellings = textSpellings
    contents = .allocate(capacity: fields.count)
    _ = contents.initialize(
      from: fields.enumerated().map { index, field in
        FieldPlan.Content(
          field, name: spellings[2 * index], jsonName: spellings[2 * index + 1],
          textName: textSpellings[2 * index + 1], member: members[2 * index],
          jsonMember: members[2 * index + 1])
      })
    let base = contents.baseAddress
    ordered = .allocate(capacity: fields.count)
    _ = ordered.initialize(
      from: fields.indices.compactMap { index in
        base.map { FieldPlan(content: UnsafePointer($0 + index)) }
      })
    following = .allocate(capacity: fields.count)
    following.initialize(repeating: 0)
    var places: [Int32: Int] = [:]
    for (index, field) in fields.enumerated() { places[field.number] = index }
    for (field, next) in zip(info.fields, info.fields.dropFirst()) {
      if let place = places[field.number], let after = places[next.number] {
        following[place] = after
      }
    }
    let isEntry = info.isMapEntry && ordered.count == 2
    key = isEntry ? ordered[0] : nil
    value = isEntry ? ordered[1] : nil
  }

  deinit {
    ordered.deallocate()
    contents.deallocate()
    following.deallocate()
  }

  /// The index in ``ordered`` of the field or extension with a name, the file's or JSON's.
  package func index(ofName name: UnsafeRawBufferPointer, after last: Int) -> Int? {
    // Fields mostly come in their order.
    let guess = last < 0 || last >= following.count ? 0 : following[last]
    if spellings.matches(2 * guess + 1, name) || spellings.matches(2 * guess, name) { return guess }
    return spellings.index(of: name).map { $0 / 2 }
  }

  /// The index in ``ordered`` of the field or extension with a name in text format: the file's,
  /// or of a group-like field its type's.
  package func index(ofTextName name: UnsafeRawBufferPointer) -> Int? {
    textSpellings.index(of: name).map { $0 / 2 }
  }
}

/// Whether a text consists of ASCII's letters and signs that JSON does not escape.
func isPlain(_ text: String) -> Bool {
  text.utf8.allSatisfy {
    $0 >= 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\")
  }
}
