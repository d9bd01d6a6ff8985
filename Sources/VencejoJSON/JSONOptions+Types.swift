import VencejoDescriptors

extension JSONOptions {
  /// The type behind an `Any`'s URL: what follows its last slash.
  func packedType(_ url: String, near pool: DescriptorPool) -> MessageDescriptor? {
    guard let name = url.split(separator: "/", omittingEmptySubsequences: false).last,
      !name.isEmpty, name.utf8.count < url.utf8.count
    else { return nil }
    let pools = [pool, types, DescriptorPool.wellKnown]
    for case let pool? in pools {
      if let type = pool.message(String(name)) { return type }
    }
    return nil
  }
}
