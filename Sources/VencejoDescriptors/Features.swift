package import VencejoProtobuf

/// The features of a file, type or field that its wire form depends on, resolved as
/// protobuf.dev's "Feature Settings for Editions" says: what a scope does not set it takes from
/// the scope around it, a file from its edition. proto2 and proto3 count as editions.
package struct Features: Hashable, Sendable {
  package enum Presence: Sendable { case explicit, implicit, required }

  package var presence: Presence
  package var closedEnums: Bool
  package var packed: Bool
  package var checksUTF8: Bool
  package var delimited: Bool

  private static let proto2 = Features(
    presence: .explicit, closedEnums: true, packed: false, checksUTF8: false, delimited: false)
  private static let proto3 = Features(
    presence: .implicit, closedEnums: false, packed: true, checksUTF8: true, delimited: false)
  private static let edition2023 = Features(
    presence: .explicit, closedEnums: false, packed: true, checksUTF8: true, delimited: false)

  /// The features of a file. Those without a syntax are proto2.
  package init(_ file: Google.FileDescriptorProto) {
    switch file.syntax {
    case "proto3": self = .proto3
    case "editions": self = Features.edition2023.with(file.options?.features)
    default:
      self = file.edition == nil ? .proto2 : Features.edition2023.with(file.options?.features)
    }
  }

  private init(
    presence: Presence, closedEnums: Bool, packed: Bool, checksUTF8: Bool, delimited: Bool
  ) {
    self.presence = presence
    self.closedEnums = closedEnums
    self.packed = packed
    self.checksUTF8 = checksUTF8
    self.delimited = delimited
  }

  /// These with what a scope within sets itself.
  package func with(_ set: Google.FeatureSet?) -> Features {
    guard let set else { return self }
    var result = self
    switch set.fieldPresence {
    case .explicit?: result.presence = .explicit
    case .implicit?: result.presence = .implicit
    case .legacyRequired?: result.presence = .required
    default: break
    }
    if let type = set.enumType, type.rawValue != 0 { result.closedEnums = type == .closed }
    if let encoding = set.repeatedFieldEncoding, encoding.rawValue != 0 {
      result.packed = encoding == .packed
    }
    if let check = set.utf8Validation, check.rawValue != 0 { result.checksUTF8 = check == .verify }
    if let encoding = set.messageEncoding, encoding.rawValue != 0 {
      result.delimited = encoding == .delimited
    }
    return result
  }

  /// The features of a field of a message with these, including what proto2 and proto3 say by
  /// other means. `oneofs` are the message's.
  package func field(
    _ field: Google.FieldDescriptorProto, oneofs: [Google.OneofDescriptorProto] = []
  ) -> Features {
    var result = self
    if let index = field.oneofIndex, oneofs.indices.contains(Int(index)) {
      result = result.with(oneofs[Int(index)].options?.features)
    }
    result = result.with(field.options?.features)
    if field.label == .required { result.presence = .required }
    if field.type == .group { result.delimited = true }
    if let packed = field.options?.packed { result.packed = packed }
    if field.label == .repeated || field.proto3Optional == true || field.oneofIndex != nil
      || field.extendee != nil
      || (field.type == .message || field.type == .group) && result.presence == .implicit
    {
      result.presence = .explicit
    }
    return result
  }
}
