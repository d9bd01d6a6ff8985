package import VencejoProtobuf

extension DescriptorPool {
  /// The type behind an `Any`'s URL: what follows its last slash. Looked for in the message's
  /// own pool, then in `types`, then among the well-known types.
  package static func packedType(
    _ url: String, near pool: DescriptorPool, types: DescriptorPool?
  ) -> MessageDescriptor? {
    guard let name = url.split(separator: "/", omittingEmptySubsequences: false).last,
      !name.isEmpty, name.utf8.count < url.utf8.count
    else { return nil }
    for case let pool? in [pool, types, wellKnown] {
      if let type = pool.message(String(name)) { return type }
    }
    return nil
  }

  /// The type of a field's messages.
  package func messageType(_ field: FieldPlan) -> MessageDescriptor {
    MessageDescriptor(pool: self, index: field.type)
  }

  /// The descriptor of a generated message: `types`' when it has one, as it may know
  /// extensions; else from the file embedded in the message's code.
  package static func descriptor<M: Message>(
    of _: M.Type, in types: DescriptorPool?
  ) throws(DescriptorError) -> MessageDescriptor {
    if let descriptor = types?.message(M.messageName) { return descriptor }
    let pool = try DescriptorPool.generated(for: M.self)
    guard let descriptor = pool.message(M.messageName) else {
      throw .unknownType(M.messageName, usedBy: M.fileDescriptor.path)
    }
    return descriptor
  }
}
