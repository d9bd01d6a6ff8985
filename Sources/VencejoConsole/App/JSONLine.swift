import VencejoJSON
import VencejoProtobuf

/// Results as one line of JSON each, in protobuf's JSON mapping.
enum JSONLine {
  /// What cannot be written as JSON (a time beyond the year 9999) becomes an object that says so.
  static func text(_ message: some Message) -> String {
    do {
      return try message.jsonString()
    } catch {
      return #"{"@error":"no JSON form"}"#
    }
  }
}
