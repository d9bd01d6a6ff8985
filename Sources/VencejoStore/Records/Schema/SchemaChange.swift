/// One difference between two schemas.
public struct SchemaChange: Sendable, Hashable {
  public enum Kind: Sendable, Hashable {
    case typeAdded, typeRemoved, fieldAdded, fieldRemoved, fieldChanged, indexChanged
    case grantChanged, roleChanged
  }

  public var kind: Kind
  public var type = ""
  public var field = ""
  /// For people.
  public var description: String
  /// What production refuses: something is gone, or means something else.
  public var isDestructive = false

  /// What is different, by type and field.
  public static func changes(from old: RecordSchema, to new: RecordSchema) -> [SchemaChange] {
    var changes: [SchemaChange] = []
    for name in Set(old.types.keys).union(new.types.keys).sorted() {
      switch (old.types[name], new.types[name]) {
      case (nil, let type?):
        changes.append(
          SchemaChange(kind: .typeAdded, type: name, description: "adds the record type \(name)"))
        changes += fields(name, [:], type.fields)
        if type.grants != nil { changes.append(grants(name)) }
      case (_?, nil):
        changes.append(
          SchemaChange(
            kind: .typeRemoved, type: name, description: "removes the record type \(name)",
            isDestructive: true))
      case (let before?, let after?):
        changes += fields(name, before.fields, after.fields)
        if before.grants != after.grants { changes.append(grants(name)) }
      case (nil, nil): break
      }
    }
    for role in Set(old.roles.keys).union(new.roles.keys).sorted()
    where old.roles[role] != new.roles[role] {
      changes.append(
        SchemaChange(kind: .roleChanged, description: "changes the security role \(role)"))
    }
    return changes
  }

  private static func grants(_ type: String) -> SchemaChange {
    SchemaChange(kind: .grantChanged, type: type, description: "changes the grants of \(type)")
  }

  private static func fields(
    _ type: String, _ old: [String: RecordSchema.Field], _ new: [String: RecordSchema.Field]
  ) -> [SchemaChange] {
    var changes: [SchemaChange] = []
    for name in Set(old.keys).union(new.keys).sorted() {
      func change(
        _ kind: Kind, _ description: String, destructive: Bool = false
      ) {
        changes.append(
          SchemaChange(
            kind: kind, type: type, field: name, description: description,
            isDestructive: destructive))
      }
      switch (old[name], new[name]) {
      case (nil, _?): change(.fieldAdded, "adds the field \(name) to \(type)")
      case (_?, nil):
        change(.fieldRemoved, "removes the field \(name) from \(type)", destructive: true)
      case (let before?, let after?):
        if before.kind != after.kind || before.isList != after.isList {
          change(.fieldChanged, "changes the type of \(name) in \(type)", destructive: true)
        } else if before.isQueryable != after.isQueryable
          || before.isSortable != after.isSortable || before.isSearchable != after.isSearchable
        {
          change(.indexChanged, "changes the indexes of \(name) in \(type)")
        }
      case (nil, nil): break
      }
    }
    return changes
  }
}

extension RecordSchema {
  /// Differs after each change.
  public var etag: String { String(UInt64(bitPattern: Self.digest(bytes)), radix: 36) }

  /// As production has it: nothing is inferred there.
  var deployed: RecordSchema {
    var copy = self
    for (name, type) in types {
      for field in type.fields.keys { copy.types[name]?.fields[field]?.isInferred = false }
    }
    return copy
  }
}
