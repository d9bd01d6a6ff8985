import VencejoDescriptors
import VencejoJSON
import VencejoProtobuf
import VencejoText

/// Why a request has no payload for an answer.
enum Refusal: Error {
  case parse(String)
  case serialize(String)
  case unsupported(String)
}

/// Decodes what a request carries and encodes it as the request wants it.
protocol Testee {
  func answer(
    _ request: Conformance.ConformanceRequest
  ) throws(Refusal) -> Conformance.ConformanceResponse.Result
}

extension Conformance.ConformanceRequest {
  var jsonOptions: JSONOptions {
    var options = JSONOptions()
    options.ignoreUnknown = testCategory == .jsonIgnoreUnknownParsingTest
    return options
  }

  var textOptions: TextOptions {
    var options = TextOptions()
    options.unknownFields = printUnknownFields
    return options
  }
}

func parsing<T, E: Error>(_ body: () throws(E) -> T) throws(Refusal) -> T {
  do {
    return try body()
  } catch {
    throw .parse("\(error)")
  }
}

func serializing<T, E: Error>(_ body: () throws(E) -> T) throws(Refusal) -> T {
  do {
    return try body()
  } catch {
    throw .serialize("\(error)")
  }
}

/// With generated code.
struct GeneratedTestee: Testee {
  let types: [any Message.Type]

  func answer(
    _ request: Conformance.ConformanceRequest
  ) throws(Refusal) -> Conformance.ConformanceResponse.Result {
    guard let type = types.first(where: { $0.messageName == request.messageType }) else {
      throw .unsupported("no message \(request.messageType)")
    }
    return try answer(request, type)
  }

  private func answer<M: Message>(
    _ request: Conformance.ConformanceRequest, _: M.Type
  ) throws(Refusal) -> Conformance.ConformanceResponse.Result {
    let message: M
    switch request.payload {
    case .protobufPayload(let bytes)?:
      message = try parsing { () throws(DecodingError) in try M(serializedBytes: bytes) }
    case .jsonPayload(let text)?:
      message = try parsing { () throws(JSONError) in
        try M(jsonString: text, request.jsonOptions)
      }
    case .textPayload(let text)?:
      message = try parsing { () throws(TextError) in
        try M(textString: text, request.textOptions)
      }
    default: throw .unsupported("this payload")
    }
    switch request.requestedOutputFormat {
    case .protobuf: return .protobufPayload(message.serializedBytes())
    case .json:
      return .jsonPayload(
        try serializing { () throws(JSONError) in try message.jsonString(request.jsonOptions) })
    case .textFormat:
      return .textPayload(
        try serializing { () throws(TextError) in try message.textString(request.textOptions) })
    default: throw .unsupported("this output")
    }
  }
}

/// With messages whose types are known from descriptors only.
struct DynamicTestee: Testee {
  private let pool: DescriptorPool?

  init(files: [FileDescriptor]) {
    pool = try? DescriptorPool(files: files.map(Self.proto))
  }

  private static func proto(_ file: FileDescriptor) throws -> Google.FileDescriptorProto {
    try Google.FileDescriptorProto(serializedBytes: file.serialized)
  }

  func answer(
    _ request: Conformance.ConformanceRequest
  ) throws(Refusal) -> Conformance.ConformanceResponse.Result {
    guard let type = pool?.message(request.messageType) else {
      throw .unsupported("no message \(request.messageType)")
    }
    let message: DynamicMessage
    switch request.payload {
    case .protobufPayload(let bytes)?:
      message = try parsing { () throws(DecodingError) in
        try DynamicMessage(type, serializedBytes: bytes)
      }
    case .jsonPayload(let text)?:
      message = try parsing { () throws(JSONError) in
        try JSONFormat.message(text, as: type, request.jsonOptions)
      }
    case .textPayload(let text)?:
      message = try parsing { () throws(TextError) in
        try TextFormat.message(text, as: type, request.textOptions)
      }
    default: throw .unsupported("this payload")
    }
    switch request.requestedOutputFormat {
    case .protobuf: return .protobufPayload(message.serializedBytes())
    case .json:
      return .jsonPayload(
        try serializing { () throws(JSONError) in
          try JSONFormat.encode(message, request.jsonOptions)
        })
    case .textFormat: return .textPayload(TextFormat.encode(message, request.textOptions))
    default: throw .unsupported("this output")
    }
  }
}
