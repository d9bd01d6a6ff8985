import VencejoProtobuf
import VencejoStore

/// What an update is to change (AIP-134): the paths of its mask, or everything without one.
struct Mask {
  private let mask: Google.FieldMask?

  /// - Parameter known: What may be changed, and `nested` parts of it.
  /// - Throws: `BAD_UPDATE_MASK` for a path that is none of them.
  init(_ mask: Google.FieldMask?, of known: [String], _ nested: [String] = [])
    throws(StoreError)
  {
    for path in mask?.paths ?? [] where path != "*" {
      guard known.contains(path) || nested.contains(path) else {
        throw .invalid(
          "update_mask", "BAD_UPDATE_MASK",
          "this cannot be changed; choose of \((known + nested).joined(separator: ", "))")
      }
    }
    self.mask = mask.flatMap { $0.paths.isEmpty || $0.paths == ["*"] ? nil : $0 }
  }

  func has(_ path: String) -> Bool { mask?.covers(path) ?? true }
}
