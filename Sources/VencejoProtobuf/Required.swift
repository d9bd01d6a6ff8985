/// Looks for missing required fields in sub-messages. For generated code.
public enum Required {
  /// In a singular field.
  @inlinable
  public static func missing<M: Message>(in value: M?, _ field: String) -> String? {
    value?.missingRequiredField.map { "\(field).\($0)" }
  }

  /// In a repeated field.
  @inlinable
  public static func missing<M: Message>(in list: [M], _ field: String) -> String? {
    guard let index = Lent.firstIndex(list, where: { $0.value.missingRequiredField != nil }) else {
      return nil
    }
    return list[index].missingRequiredField.map { "\(field)[\(index)].\($0)" }
  }

  /// In the values of a map.
  @inlinable
  public static func missing<K, M: Message>(in map: [K: M], _ field: String) -> String? {
    for (key, value) in map {
      if let path = value.missingRequiredField { return "\(field)[\(key)].\(path)" }
    }
    return nil
  }
}
