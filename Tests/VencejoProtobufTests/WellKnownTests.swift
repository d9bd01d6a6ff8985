import Testing
import VencejoProtobuf

struct WellKnownTests {
  @Test(
    arguments: [
      (0, 0, 0), (1, 0, 1), (-1, -1, 999_999_999), (1_500_000_000, 1, 500_000_000),
      (.max, 9_223_372_036, 854_775_807), (.min, -9_223_372_037, 145_224_192),
    ] as [(Int64, Int64, Int32)])
  func timestamps(nanoseconds: Int64, seconds: Int64, nanos: Int32) {
    let timestamp = Google.Timestamp(unixNanoseconds: nanoseconds)
    #expect(timestamp == Google.Timestamp(seconds: seconds, nanos: nanos))
    #expect(timestamp.unixNanoseconds == nanoseconds || nanoseconds == .min)
  }

  @Test func milliseconds() {
    #expect(Google.Timestamp(unixMilliseconds: -1) == .init(seconds: -1, nanos: 999_000_000))
    #expect(Google.Timestamp(seconds: -1, nanos: 999_000_001).unixMilliseconds == -1)
    #expect(Google.Timestamp(unixMilliseconds: 1234).unixMilliseconds == 1234)
  }

  /// Nothing a peer sends may trap.
  @Test(arguments: [Int64.min, -1, 0, .max], [Int32.min, -1, 0, .max])
  func extremes(seconds: Int64, nanos: Int32) {
    let timestamp = Google.Timestamp(seconds: seconds, nanos: nanos)
    _ = (timestamp.unixNanoseconds, timestamp.unixMilliseconds)
    _ = Google.Duration(seconds: seconds, nanos: nanos).duration
  }

  @Test func durations() {
    let duration = Swift.Duration.milliseconds(-1500)
    #expect(Google.Duration(duration) == .init(seconds: -1, nanos: -500_000_000))
    #expect(Google.Duration(duration).duration == duration)
  }

  @Test func anything() throws {
    let packed = Google.AnyMessage(packing: Google.StringValue(value: "x"))
    #expect(packed.typeUrl == "type.googleapis.com/google.protobuf.StringValue")
    #expect(try packed.unpack(Google.StringValue.self)?.value == "x")
    #expect(try packed.unpack(Google.BytesValue.self) == nil)
  }

  @Test func masks() {
    let mask = Google.FieldMask("display_name", "policy")
    #expect(mask.covers("policy.slow_mode"))
    #expect(!mask.covers("policy_x"))
  }

  /// Descriptors are embedded and know what they import.
  @Test func descriptors() throws {
    let file = try Google.FileDescriptorProto(serializedBytes: Fixture.everythingProto.serialized)
    #expect(file.name == Fixture.everythingProto.path)
    #expect(file.dependency == Fixture.everythingProto.dependencies.map(\.path))
    #expect(file.messageType.map(\.name).contains("WellKnown"))
  }
}
