import TestMessages
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
    #expect(mask.covers("policy") && !Google.FieldMask("policy.slow_mode").covers("policy"))
  }

  @Test func masksAsSets() {
    let mask = Google.FieldMask("b", "a.b", "a", "a.c.d", "b", "a-x", "aa")
    #expect(mask.normalized().paths == ["a", "a-x", "aa", "b"])
    let left = Google.FieldMask("a.b", "c")
    let right = Google.FieldMask("a", "c.d.e", "f")
    #expect(left.union(right).paths == ["a", "c", "f"])
    #expect(left.intersection(right).paths == ["a.b", "c.d.e"])
    #expect(left.subtracting(right).paths == ["c"])
    #expect(right.subtracting(left).paths == ["a", "f"])
    #expect(Google.FieldMask().union(.init()).paths.isEmpty)
  }

  /// Descriptors are embedded and know what they import.
  @Test func descriptors() throws {
    let file = try Google.FileDescriptorProto(serializedBytes: Fixture.everythingProto.serialized)
    #expect(file.name == Fixture.everythingProto.path)
    #expect(file.dependency == Fixture.everythingProto.dependencies.map(\.path))
    #expect(file.messageType.map(\.name).contains("WellKnown"))
  }
}

/// Conveniences of times and values.
struct ConvenienceTests {
  private typealias Timestamp = Google.Timestamp

  @Test func timestampArithmetic() {
    let moment = Timestamp(seconds: -1, nanos: 999_999_999)
    #expect(moment + .nanoseconds(1) == Timestamp())
    #expect(moment + .milliseconds(2500) == Timestamp(seconds: 2, nanos: 499_999_999))
    #expect(Timestamp() - .nanoseconds(1) == moment)
    #expect(Timestamp(seconds: 2) - moment == .seconds(2) + .nanoseconds(1))
    #expect(moment < Timestamp() && !(Timestamp() < Timestamp()))
    #expect(Timestamp(seconds: .max) + .seconds(1) == Timestamp(seconds: .max))
    #expect(Timestamp(seconds: .min) - .seconds(5) == Timestamp(seconds: .min))
  }

  @Test func validity() {
    #expect(Timestamp(seconds: 253_402_300_799, nanos: 999_999_999).isValid)
    #expect(!Timestamp(seconds: 253_402_300_800).isValid && !Timestamp(nanos: -1).isValid)
    #expect(Google.Duration(seconds: -1, nanos: -1).isValid)
    #expect(!Google.Duration(seconds: -1, nanos: 1).isValid)
    #expect(!Google.Duration(seconds: 315_576_000_001).isValid)
    #expect(Google.Duration(seconds: 1, nanos: -1).normalized() == .init(nanos: 999_999_999))
    #expect(
      Google.Duration(seconds: -1, nanos: 1_500_000_000).normalized() == .init(nanos: 500_000_000))
    #expect(
      Google.Duration(seconds: -3, nanos: 1_500_000_000).normalized()
        == .init(seconds: -1, nanos: -500_000_000))
  }

  @Test(arguments: [Int64.min, -1, 0, .max], [Int32.min, -1, 0, .max])
  func extremes(seconds: Int64, nanos: Int32) {
    let moment = Timestamp(seconds: seconds, nanos: nanos)
    for step in [Swift.Duration.seconds(Int64.max), .nanoseconds(-1), .zero] {
      _ = (moment + step, moment < moment + step)
    }
    _ = Google.Duration(seconds: seconds, nanos: nanos).normalized()
  }

  @Test func values() {
    let settings: Google.Struct = [
      "theme": "dark", "sizes": [1, 2.5, true], "beta": nil, "in": [:],
    ]
    #expect(settings["theme"]?.string == "dark" && settings["beta"]?.isNull == true)
    #expect(settings["sizes"]?[1]?.number == 2.5 && settings["sizes"]?[2]?.bool == true)
    #expect(settings["sizes"]?[3] == nil && settings["sizes"]?[-1] == nil)
    #expect(settings["in"]?.object?.isEmpty == true && settings["in"]?["x"] == nil)
    let double: Google.Struct = ["a": 1, "a": 2]
    #expect(double["a"]?.number == 2)
    let name: Google.StringValue = "x"
    #expect(name.value == "x" && (5 as Google.Int64Value).value == 5)
  }
}
