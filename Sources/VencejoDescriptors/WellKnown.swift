/// The types with a JSON form of their own.
package enum WellKnown: Sendable {
  case any, timestamp, duration, fieldMask, structure, value, listValue, wrapper

  package init?(_ fullName: String) {
    switch fullName {
    case "google.protobuf.Any": self = .any
    case "google.protobuf.Timestamp": self = .timestamp
    case "google.protobuf.Duration": self = .duration
    case "google.protobuf.FieldMask": self = .fieldMask
    case "google.protobuf.Struct": self = .structure
    case "google.protobuf.Value": self = .value
    case "google.protobuf.ListValue": self = .listValue
    case "google.protobuf.DoubleValue", "google.protobuf.FloatValue", "google.protobuf.Int64Value",
      "google.protobuf.UInt64Value", "google.protobuf.Int32Value", "google.protobuf.UInt32Value",
      "google.protobuf.BoolValue", "google.protobuf.StringValue", "google.protobuf.BytesValue":
      self = .wrapper
    default: return nil
    }
  }
}
