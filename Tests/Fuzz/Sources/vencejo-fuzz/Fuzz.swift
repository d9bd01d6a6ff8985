import Glibc
import TestMessages
import VencejoDescriptors
import VencejoGenerator
import VencejoJSON
import VencejoProtobuf
import VencejoText

/// What to feed, by the first argument.
enum Target: String {
  case binary, json, text, descriptors, plugin
}

nonisolated(unsafe) private var chosen: Target?

/// Takes the first argument away from libFuzzer, which knows no words but its own. Processes
/// that it starts itself find the word in the environment.
@_cdecl("LLVMFuzzerInitialize")
public func initialize(
  _ count: UnsafeMutablePointer<CInt>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>
) -> CInt {
  let variable = "VENCEJO_FUZZ"
  let first = count.pointee > 1 ? arguments.pointee[1].map { String(cString: $0) } : nil
  chosen = first.flatMap { Target(rawValue: $0) }
  if let chosen {
    setenv(variable, chosen.rawValue, 1)
    for index in 1..<Int(count.pointee) { arguments.pointee[index] = arguments.pointee[index + 1] }
    count.pointee -= 1
  } else {
    chosen = getenv(variable).flatMap { Target(rawValue: String(cString: $0)) }
  }
  if chosen == nil {
    let complaint = "the first argument is one of binary, json, text, descriptors and plugin\n"
    _ = complaint.withCString { write(STDERR_FILENO, $0, strlen($0)) }
    exit(64)
  }
  return 0
}

/// What must never be: found by the fuzzer as a crash.
func check(_ condition: Bool, _ what: StaticString) {
  // A fuzzer's finding, not a peer's: the trap is the report.
  if !condition { fatalError("\(what)") }
}

let pool = try? DescriptorPool(
  Google.descriptorProto, Google.structProto, Google.anyProto, Google.timestampProto,
  Google.durationProto, Google.fieldMaskProto, Google.wrappersProto, Fixture.everythingProto,
  Legacy.legacyProto, Modern.modernProto, Grouped.groupedProto)

func type(_ name: String) -> MessageDescriptor? { pool?.message(name) }

let types = [
  "google.protobuf.FileDescriptorProto", "google.protobuf.Value", "google.protobuf.Any",
  "google.protobuf.Timestamp", "google.protobuf.Duration", "google.protobuf.FieldMask",
  "google.protobuf.Int64Value", "google.protobuf.DoubleValue", "google.protobuf.BytesValue",
  "fixture.Everything", "fixture.legacy.Old", "fixture.modern.Modern", "fixture.grouped.Grouped",
  "fixture.legacy.Set",
].compactMap(type)

func said(_ json: String?, _ type: MessageDescriptor) -> DynamicMessage? {
  json.flatMap { try? JSONFormat.message($0, as: type) }
}

func generated<M: Message>(_: M.Type, _ bytes: [UInt8]) {
  guard let descriptor = type(M.messageName) else { return check(false, "no such type") }
  let generated = try? M(partialSerializedBytes: bytes)
  let dynamic = try? DynamicMessage(descriptor, serializedBytes: bytes, partial: true)
  check((generated == nil) == (dynamic == nil), "generated and dynamic disagree")
  guard let generated, let dynamic else { return }
  check(
    (try? M(partialSerializedBytes: dynamic.serializedBytes())) != nil,
    "generated code does not read what dynamic messages write")
  check(
    (try? TextFormat.encode(wire: bytes, as: descriptor)) == TextFormat.encode(dynamic),
    "text of bytes and of fields differ")
  // In the order of fields and items as they came, and in the usual one. Map entries may stand in
  // any: what is compared is what the texts say.
  let texts = [bytes, dynamic.serializedBytes(deterministic: true)].map {
    try? JSONFormat.encode(wire: $0, as: descriptor)
  }
  check(
    // A message that an Any packs, and a later one replaces, must have a JSON form all the same.
    texts[0] == texts[1] || texts[0] == nil && texts[1]?.contains("@type") == true
      || (texts.allSatisfy { $0 != nil }
        && said(texts[0], descriptor) == said(texts[1], descriptor)),
    "JSON of bytes and of fields differ")
  let again = generated.serializedBytes(deterministic: true)
  check((try? M(partialSerializedBytes: again)) == generated, "no round trip")
  check(
    (try? DynamicMessage(descriptor, serializedBytes: again, partial: true)) != nil,
    "dynamic messages do not read what was written")
}

/// Generated code and dynamic messages read alike, and what was read comes back.
func binary(_ bytes: [UInt8]) {
  guard let kind = bytes.first else { return }
  let rest = Array(bytes.dropFirst())
  switch kind % 8 {
  case 0: generated(Google.FileDescriptorSet.self, rest)
  case 1: generated(Google.Struct.self, rest)
  case 2: generated(Fixture.Everything.self, rest)
  case 3: generated(Legacy.Old.self, rest)
  case 4: generated(Modern.Modern.self, rest)
  case 5: generated(Grouped.Grouped.self, rest)
  case 6: generated(Legacy.Set.self, rest)
  default: _ = try? TextFormat.raw(rest)
  }
}

func json(_ bytes: [UInt8]) {
  guard let kind = bytes.first, !types.isEmpty else { return }
  let descriptor = types[Int(kind) % types.count]
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
  guard let kind = bytes.first, !types.isEmpty else { return }
  let descriptor = types[Int(kind) % types.count]
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
  switch chosen {
  case .binary?: binary(bytes)
  case .json?: json(bytes)
  case .text?: text(bytes)
  case .descriptors?: descriptors(bytes)
  case .plugin?: plugin(bytes)
  case nil: return -1
  }
  return 0
}
