public import VencejoProtobuf

/// What an update with a mask does where it replaces and where it adds. By default, as
/// `field_mask.proto` says of update operations: sub-messages are merged, lists extended.
public struct FieldMaskOptions: Hashable, Sendable {
  /// A sub-message at the end of a path replaces what was there, instead of being merged into it.
  public var replacesMessages = false
  /// A list or map at the end of a path replaces what was there, instead of extending it.
  public var replacesRepeated = false

  /// The defaults.
  public init() {}

  /// The options for updates, as most APIs mean them: everything a path ends at is replaced.
  public static var replacing: Self {
    var options = Self()
    options.replacesMessages = true
    options.replacesRepeated = true
    return options
  }
}

/// The paths of a mask as a tree. A node without children stands for all of its field.
private struct MaskTree {
  var children: [String: MaskTree] = [:]

  init(_ mask: Google.FieldMask) {
    for path in mask.normalized().paths {
      insert(path.split(separator: ".", omittingEmptySubsequences: false)[...])
    }
  }

  private init() {}

  private mutating func insert(_ path: ArraySlice<Substring>) {
    guard let first = path.first else { return }
    children[String(first), default: MaskTree()].insert(path.dropFirst())
  }
}

extension Google.FieldMask {
  /// A mask of all fields of a type.
  public init(allFieldsOf type: MessageDescriptor) { self.init(paths: type.fields.map(\.name)) }

  /// The first path that a message of the type does not have, nil when it has all. Only the last
  /// field of a path may be repeated.
  public func invalidPath(in type: MessageDescriptor) -> String? {
    paths.first { !Self.isValid($0, in: type) }
  }

  private static func isValid(_ path: String, in type: MessageDescriptor) -> Bool {
    var type: MessageDescriptor? = type
    for name in path.split(separator: ".", omittingEmptySubsequences: false) {
      guard let field = type?.field(named: String(name)), field.name == name else { return false }
      type = field.isRepeated ? nil : field.messageType
    }
    return true
  }
}

extension DynamicMessage {
  /// Takes from another message of the same type the fields a mask names: an absent one is
  /// cleared. Paths the type does not have change nothing; see
  /// ``VencejoProtobuf/Google/FieldMask/invalidPath(in:)``.
  public mutating func merge(
    _ source: DynamicMessage, masked mask: Google.FieldMask, _ options: FieldMaskOptions = .init()
  ) {
    guard source.descriptor.fullName == descriptor.fullName else { return }
    merge(source, MaskTree(mask), options)
  }

  private mutating func merge(
    _ source: DynamicMessage, _ tree: MaskTree, _ options: FieldMaskOptions
  ) {
    for (name, node) in tree.children {
      guard let field = descriptor.field(named: name), field.name == name else { continue }
      let number = field.number
      let new = source.fields[number]
      if !node.children.isEmpty {
        guard !field.isRepeated, let type = field.messageType else { continue }
        var inner = DynamicMessage(type)
        var other = inner
        if case .message(let message)? = fields[number] { inner = message }
        if case .message(let message)? = new { other = message }
        if fields[number] == nil && new == nil { continue }
        inner.merge(other, node, options)
        set(.message(inner), field)
      } else if field.isRepeated {
        if options.replacesRepeated {
          fields[number] = new
        } else if let new {
          fields[number] = Self.extended(fields[number], by: new)
        }
      } else if field.kind == .message {
        if options.replacesMessages || fields[number] == nil {
          new.map { set($0, field) } ?? (fields[number] = nil)
        } else if case .message(let new)? = new, case .message(var old)? = fields[number] {
          old.merge(new)
          set(.message(old), field)
        }
      } else {
        new.map { set($0, field) } ?? (fields[number] = nil)
      }
    }
  }

  /// Merges all fields of another message of the same type, as decoding one behind the other
  /// does: singular fields are replaced, sub-messages merged, lists and maps extended.
  public mutating func merge(_ source: DynamicMessage) {
    guard source.descriptor.fullName == descriptor.fullName else { return }
    for (number, new) in source.fields {
      guard let field = descriptor.field(number: number) else {
        fields[number] = new
        continue
      }
      if field.isRepeated {
        fields[number] = Self.extended(fields[number], by: new)
      } else if case .message(let new) = new, case .message(var old)? = fields[number] {
        fields[number] = nil
        old.merge(new)
        fields[number] = .message(old)
      } else {
        set(new, field)
      }
    }
    source.unknownFields.bytes.withUnsafeBytes { unknownFields.append($0) }
  }

  /// Removes all fields but those a mask names.
  public mutating func trim(to mask: Google.FieldMask) { trim(MaskTree(mask)) }

  private mutating func trim(_ tree: MaskTree) {
    var kept: [Int32: DynamicValue] = [:]
    for (name, node) in tree.children {
      guard let field = descriptor.field(named: name), field.name == name,
        var value = fields[field.number]
      else { continue }
      if !node.children.isEmpty {
        guard !field.isRepeated, case .message(var message) = value else { continue }
        message.trim(node)
        value = .message(message)
      }
      kept[field.number] = value
    }
    fields = kept
    unknownFields.removeAll()
  }

  private mutating func set(_ value: DynamicValue, _ field: FieldDescriptor) {
    if let oneof = field.info.oneof {
      for other in descriptor.info.oneofs[oneof] ?? [] { fields[other.number] = nil }
    }
    fields[field.number] = value
  }

  private static func extended(_ old: DynamicValue?, by new: DynamicValue) -> DynamicValue {
    switch (old, new) {
    case (.list(let old)?, .list(let new)): .list(old + new)
    case (.map(let old)?, .map(let new)): .map(old.merging(new) { $1 })
    default: new
    }
  }
}

extension Message {
  /// Takes from another message the fields a mask names: an absent one is cleared. By the
  /// message's descriptor. Throws when the descriptor embedded in its code cannot be linked.
  public mutating func merge(
    _ source: Self, masked mask: Google.FieldMask, _ options: FieldMaskOptions = .init()
  ) throws(DescriptorError) {
    var message = try DynamicMessage(self)
    message.merge(try DynamicMessage(source), masked: mask, options)
    self = try Self(message)
  }

  /// Removes all fields but those a mask names.
  public mutating func trim(to mask: Google.FieldMask) throws(DescriptorError) {
    var message = try DynamicMessage(self)
    message.trim(to: mask)
    self = try Self(message)
  }
}
