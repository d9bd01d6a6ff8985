import Glibc
import VencejoDescriptors
import VencejoGenerator
import VencejoJSON
import VencejoProtobuf
import VencejoText

/// What to feed: the environment variable `VENCEJO_FUZZ` says, as libFuzzer's own arguments leave
/// no room for another.
enum Target: String {
  case binary, json, text, descriptors, plugin

  static let chosen = getenv("VENCEJO_FUZZ").flatMap { Target(rawValue: String(cString: $0)) }
}

/// What must never be: found by the fuzzer as a crash.
func check(_ condition: Bool, _ what: StaticString) {
  // A fuzzer's finding, not a peer's: the trap is the report.
  if !condition { fatalError("\(what)") }
}

let pool = try? DescriptorPool(
  Google.descriptorProto, Google.structProto, Google.anyProto, Google.timestampProto,
  Google.durationProto, Google.fieldMaskProto, Google.wrappersProto)

func type(_ name: String) -> MessageDescriptor? { pool?.message(name) }

let jsonTypes = [
  "google.protobuf.FileDescriptorProto", "google.protobuf.Value", "google.protobuf.Any",
  "google.protobuf.Timestamp", "google.protobuf.Duration", "google.protobuf.FieldMask",
  "google.protobuf.Int64Value", "google.protobuf.DoubleValue", "google.protobuf.BytesValue",
].compactMap(type)

/// Generated code and dynamic messages read alike, and what was read comes back.
func binary(_ bytes: [UInt8]) {
  guard let descriptor = type("google.protobuf.FileDescriptorSet"),
    let structure = type("google.protobuf.Struct")
  else { return }
  let generated = try? Google.FileDescriptorSet(partialSerializedBytes: bytes)
  let dynamic = try? DynamicMessage(descriptor, serializedBytes: bytes, partial: true)
  check((generated == nil) == (dynamic == nil), "generated and dynamic disagree")
  if let generated {
    let again = generated.serializedBytes(deterministic: true)
    check(
      (try? Google.FileDescriptorSet(partialSerializedBytes: again)) == generated, "no round trip")
  }
  let map = try? Google.Struct(serializedBytes: bytes)
  let dynamicMap = try? DynamicMessage(structure, serializedBytes: bytes)
  check((map == nil) == (dynamicMap == nil), "generated and dynamic maps disagree")
  _ = try? TextFormat.raw(bytes)
}

func json(_ bytes: [UInt8]) {
  guard let kind = bytes.first, !jsonTypes.isEmpty else { return }
  let descriptor = jsonTypes[Int(kind) % jsonTypes.count]
  let text = String(decoding: bytes.dropFirst(), as: UTF8.self)
  var options = JSONOptions()
  options.ignoreUnknown = kind & 0x80 != 0
  guard let message = try? JSONFormat.message(text, as: descriptor, options) else { return }
  // A message may nest in JSON where its wire form may not.
  guard let written = try? JSONFormat.encode(message, options) else { return }
  guard let again = try? JSONFormat.message(written, as: descriptor, options) else {
    return check(false, "our JSON is not read")
  }
  check(again == message, "JSON changes on the way")
}

func text(_ bytes: [UInt8]) {
  guard let kind = bytes.first, !jsonTypes.isEmpty else { return }
  let descriptor = jsonTypes[Int(kind) % jsonTypes.count]
  var options = TextOptions()
  options.ignoreUnknown = kind & 0x80 != 0
  options.singleLine = kind & 0x40 != 0
  let text = String(decoding: bytes.dropFirst(), as: UTF8.self)
  guard let message = try? TextFormat.message(text, as: descriptor, options) else { return }
  let written = TextFormat.encode(message, options)
  guard let again = try? TextFormat.message(written, as: descriptor, options) else {
    return check(false, "our text is not read")
  }
  check(
    again.serializedBytes(deterministic: true) == message.serializedBytes(deterministic: true),
    "text changes on the way")
}

func descriptors(_ bytes: [UInt8]) {
  guard let pool = try? DescriptorPool(serializedFileSet: bytes) else { return }
  for name in pool.messageNames.prefix(20) {
    guard let descriptor = pool.message(name) else { continue }
    for field in descriptor.fields { _ = field.defaultValue }
    if let message = try? DynamicMessage(descriptor, serializedBytes: bytes, partial: true) {
      _ = message.serializedBytes()
      _ = try? JSONFormat.encode(message)
      _ = TextFormat.encode(message)
    }
  }
}

func plugin(_ bytes: [UInt8]) {
  guard let request = try? Google.CodeGeneratorRequest(partialSerializedBytes: bytes) else {
    return
  }
  _ = Generator.respond(to: request)
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  switch Target.chosen {
  case .binary: binary(bytes)
  case .json: json(bytes)
  case .text: text(bytes)
  case .descriptors: descriptors(bytes)
  case .plugin: plugin(bytes)
  case nil:
    let complaint = "VENCEJO_FUZZ names none of binary, json, text, descriptors and plugin\n"
    _ = complaint.withCString { write(STDERR_FILENO, $0, strlen($0)) }
    exit(64)
  }
  return 0
}
