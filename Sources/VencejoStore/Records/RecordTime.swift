/// Times as files and filters write them.
public enum RecordTime {
  /// Microseconds since 1970 of a time by RFC 3339, or of a day's midnight in UTC; nil when it is
  /// none.
  public static func microseconds(_ text: String) -> Int64? { RFC3339.microseconds(text) }
}
