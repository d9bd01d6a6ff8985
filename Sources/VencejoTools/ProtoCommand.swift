import VencejoDescriptors
import VencejoJSON
import VencejoProtobuf
import VencejoRPC
import VencejoText

/// `vencejo proto`: messages between their binary, JSON and text forms.
public enum ProtoCommand {
  static let help = """
    usage: vencejo proto decode [TYPE] [options]     binary to JSON or text
           vencejo proto encode TYPE [options]       JSON or text to binary
           vencejo proto convert TYPE [options]      any form to any other
           vencejo proto describe [TYPE] [options]   what the type is; or all types

    Converts a message of a type that a .proto file or a set of descriptors declares. decode
    without a type shows the fields by number, and needs neither.

      --proto FILE         a .proto file; may be repeated. Read by protoc
      --include DIR        where .proto files are looked for; may be repeated (default: .)
      --descriptors FILE   a set, as protoc --include_imports --descriptor_set_out writes it
      --from FORM          binary, json or text
      --to FORM            binary, json or text
      --input FILE         what to read (default: standard input)
      --output FILE        where to write (default: standard output)
      --original-names     JSON: names as in the file, not in lowerCamel
      --ignore-unknown     reading: skip names the type does not know
      --compact            writing: all in one line

      vencejo proto decode --input message.bin
      vencejo proto encode shop.v1.Order --proto shop.proto --from text <order.txt >order.bin
      vencejo proto describe shop.v1.Order --descriptors shop.pb
    """

  enum Form: String {
    case binary, json, text
  }

  private static let options: [ArgumentList.Option] = [
    .init("proto", short: "p", value: true), .init("include", short: "I", value: true),
    .init("descriptors", short: "d", value: true), .init("from", value: true),
    .init("to", value: true), .init("input", short: "i", value: true),
    .init("output", short: "o", value: true), .init("original-names"),
    .init("ignore-unknown"), .init("compact"), .init("help", short: "h"),
  ]

  public static func run(_ arguments: some Sequence<String>, _ output: Output) -> Int32 {
    do {
      let arguments = try ArgumentList(arguments, options: options)
      if arguments.has("help") {
        output.line(help)
        return ExitCode.ok
      }
      guard let verb = arguments.words.first, arguments.words.count <= 2 else {
        throw ArgumentList.Fault("needs one of decode, encode, convert and describe")
      }
      let type = arguments.words.count > 1 ? arguments.words[1] : nil
      switch verb {
      case "decode": try convert(type, .binary, .json, arguments, output)
      case "encode": try convert(type, .json, .binary, arguments, output)
      case "convert": try convert(type, nil, nil, arguments, output)
      case "describe": try describe(type, arguments, output)
      default: throw ArgumentList.Fault("unknown verb '\(verb)'")
      }
      return ExitCode.ok
    } catch let fault as ArgumentList.Fault {
      output.complain("vencejo proto: \(fault)\nTry 'vencejo proto --help'.")
      return ExitCode.usage
    } catch {
      output.complain("vencejo proto: \(error)")
      return ExitCode.failure
    }
  }

  // MARK: Converting

  private static func form(
    _ name: String, _ arguments: ArgumentList, default standard: Form?
  ) throws(ArgumentList.Fault) -> Form {
    guard let text = arguments[name] else {
      if let standard { return standard }
      throw ArgumentList.Fault("needs --\(name)")
    }
    guard let form = Form(rawValue: text) else {
      throw ArgumentList.Fault("--\(name) is binary, json or text, not '\(text)'")
    }
    return form
  }

  private static func convert(
    _ typeName: String?, _ from: Form?, _ to: Form?, _ arguments: ArgumentList, _ output: Output
  ) throws {
    let source = try form("from", arguments, default: from)
    let target = try form("to", arguments, default: to)
    guard let typeName else {
      guard source == .binary, target != .binary else { throw ArgumentList.Fault("needs a type") }
      if arguments["to"] == "json" { throw ArgumentList.Fault("needs a type, to write JSON") }
      let bytes = try ProtoFiles.read(arguments["input"])
      try write(Array(try TextFormat.raw(bytes).utf8), isText: true, arguments, output)
      return
    }
    let pool = try pool(arguments)
    guard let type = pool.message(typeName) else {
      throw ArgumentList.Fault("no file declares a message \(typeName)")
    }
    let bytes = try ProtoFiles.read(arguments["input"])
    var json = JSONOptions()
    json.originalNames = arguments.has("original-names")
    json.ignoreUnknown = arguments.has("ignore-unknown")
    json.pretty = !arguments.has("compact")
    json.types = pool
    var text = TextOptions()
    text.ignoreUnknown = json.ignoreUnknown
    text.singleLine = !json.pretty
    text.types = pool
    let message =
      switch source {
      case .binary: try DynamicMessage(type, serializedBytes: bytes)
      case .json: try JSONFormat.message(try string(bytes), as: type, json)
      case .text: try TextFormat.message(try string(bytes), as: type, text)
      }
    if let path = message.missingRequiredField {
      throw DecodingError(kind: .missingRequired, offset: bytes.count, path: path)
    }
    switch target {
    case .binary:
      try write(message.serializedBytes(deterministic: true), isText: false, arguments, output)
    case .json:
      let result = try JSONFormat.encode(message, json) + "\n"
      try write(Array(result.utf8), isText: true, arguments, output)
    case .text:
      var result = TextFormat.encode(message, text)
      if text.singleLine { result += "\n" }
      try write(Array(result.utf8), isText: true, arguments, output)
    }
  }

  private static func string(_ bytes: [UInt8]) throws(ArgumentList.Fault) -> String {
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw ArgumentList.Fault("the input is not UTF-8")
    }
    return text
  }

  private static func write(
    _ bytes: [UInt8], isText: Bool, _ arguments: ArgumentList, _ output: Output
  ) throws {
    if let path = arguments["output"] {
      try ProtoFiles.write(bytes, to: path)
    } else if isText {
      output.out(String(decoding: bytes, as: UTF8.self))
    } else {
      try ProtoFiles.write(bytes, to: nil)
    }
  }

  // MARK: Types

  /// The types the options name, or what every program knows.
  private static func pool(_ arguments: ArgumentList) throws -> DescriptorPool {
    var files: [Google.FileDescriptorProto] = []
    for path in arguments.all("descriptors") {
      files += try Google.FileDescriptorSet(serializedBytes: ProtoFiles.read(path)).file
    }
    let protos = arguments.all("proto")
    if !protos.isEmpty {
      let bytes = try ProtoFiles.compile(protos, includes: arguments.all("include"))
      files += try Google.FileDescriptorSet(serializedBytes: bytes).file
    }
    if files.isEmpty {
      return try DescriptorPool(
        Google.timestampProto, Google.durationProto, Google.fieldMaskProto, Google.anyProto,
        Google.emptyProto, Google.structProto, Google.wrappersProto, Google.descriptorProto,
        GoogleRPC.statusProto, GoogleRPC.errorDetailsProto)
    }
    return try DescriptorPool(files: files)
  }

  private static func describe(
    _ name: String?, _ arguments: ArgumentList, _ output: Output
  ) throws {
    let pool = try pool(arguments)
    guard let name else {
      for name in pool.messageNames { output.line(name) }
      for name in pool.serviceNames { output.line(name) }
      return
    }
    if let type = pool.message(name) {
      output.out(ProtoPrinter.text(of: type))
    } else if let type = pool.enumeration(name) {
      output.out(ProtoPrinter.text(of: type))
    } else if let service = pool.service(name) {
      output.out(ProtoPrinter.text(of: service))
    } else {
      throw ArgumentList.Fault("no file declares \(name)")
    }
  }
}
