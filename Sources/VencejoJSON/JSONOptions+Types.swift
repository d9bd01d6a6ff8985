import VencejoDescriptors

extension JSONOptions {
  /// The type behind an `Any`'s URL.
  func packedType(_ url: String, near pool: DescriptorPool) -> MessageDescriptor? {
    DescriptorPool.packedType(url, near: pool, types: types)
  }
}
