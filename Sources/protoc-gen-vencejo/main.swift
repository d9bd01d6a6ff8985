// The protoc plugin: a CodeGeneratorRequest on standard input, the answer on standard output.

import Glibc
import VencejoGenerator
import VencejoProtobuf

/// All bytes up to the end of a descriptor; nil when reading fails.
func readAll(_ descriptor: Int32) -> [UInt8]? {
  var bytes: [UInt8] = []
  var chunk = [UInt8](repeating: 0, count: 1 << 16)
  while true {
    let count = read(descriptor, &chunk, chunk.count)
    if count == 0 { return bytes }
    if count > 0 {
      bytes += chunk[..<count]
    } else if errno != EINTR {
      return nil
    }
  }
}

func writeAll(_ descriptor: Int32, _ bytes: [UInt8]) -> Bool {
  var rest = bytes[...]
  while !rest.isEmpty {
    let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    if count > 0 {
      rest = rest.dropFirst(count)
    } else if count == 0 || errno != EINTR {
      return false
    }
  }
  return true
}

func complain(_ text: String) -> Never {
  _ = writeAll(STDERR_FILENO, Array("protoc-gen-vencejo: \(text)\n".utf8))
  exit(1)
}

guard let input = readAll(STDIN_FILENO) else { complain("cannot read the request") }
do {
  let request = try Google.CodeGeneratorRequest(serializedBytes: input)
  let response = Generator.respond(to: request)
  if !writeAll(STDOUT_FILENO, response.serializedBytes()) { complain("cannot write the answer") }
} catch {
  complain("the request is not one of protoc's: \(error)")
}
