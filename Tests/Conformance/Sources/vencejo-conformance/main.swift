// The testee of protobuf's conformance suite: requests on standard input, each behind its length
// in four bytes, answers on standard output likewise.
//
//     vencejo-conformance generated|dynamic [editions]
//
// With `editions`, messages are those of the same files rewritten in edition 2023.

import Glibc
import VencejoProtobuf

/// Reads exactly so many bytes; nil at the end of the input.
func read(exactly count: Int) -> [UInt8]? {
  var bytes = [UInt8](repeating: 0, count: count)
  var filled = 0
  while filled < count {
    let got = bytes.withUnsafeMutableBytes { buffer in
      Glibc.read(STDIN_FILENO, buffer.baseAddress.map { $0 + filled }, count - filled)
    }
    if got <= 0 { return nil }
    filled += got
  }
  return bytes
}

func write(_ bytes: [UInt8]) {
  var written = 0
  while written < bytes.count {
    let put = bytes.withUnsafeBytes { buffer in
      Glibc.write(STDOUT_FILENO, buffer.baseAddress.map { $0 + written }, bytes.count - written)
    }
    if put <= 0 { exit(1) }
    written += put
  }
}

let arguments = CommandLine.arguments.dropFirst()
let editions = arguments.contains("editions")
let testee: any Testee =
  arguments.contains("dynamic")
  ? DynamicTestee(files: editions ? editionFiles : syntaxFiles)
  : GeneratedTestee(types: editions ? editionTypes : syntaxTypes)

while let header = read(exactly: 4) {
  let count = header.reversed().reduce(0) { $0 << 8 | Int($1) }
  guard let body = read(exactly: count) else { exit(1) }
  var response = Conformance.ConformanceResponse()
  do {
    response = answer(to: try Conformance.ConformanceRequest(serializedBytes: body), by: testee)
  } catch {
    response.result = .runtimeError("the request: \(error)")
  }
  let bytes = response.serializedBytes()
  write((0..<4).map { UInt8(truncatingIfNeeded: bytes.count >> (8 * $0)) } + bytes)
}

func answer(
  to request: Conformance.ConformanceRequest, by testee: any Testee
) -> Conformance.ConformanceResponse {
  // The runner asks first which failures we expect: none.
  if request.messageType == "conformance.FailureSet" {
    return .init(result: .protobufPayload([]))
  }
  do {
    return .init(result: try testee.answer(request))
  } catch {
    switch error {
    case .parse(let reason): return .init(result: .parseError(reason))
    case .serialize(let reason): return .init(result: .serializeError(reason))
    case .unsupported(let what): return .init(result: .skipped(what))
    }
  }
}
