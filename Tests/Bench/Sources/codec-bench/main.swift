// The Swift side of Scripts/bench/codec. Synchronous, so that callgrind sees calls, not tasks.
//
//   codec-bench check INPUTS OUTPUTS       writes what it makes of each input
//   codec-bench time INPUTS MILLISECONDS   prints `MESSAGE OPERATION NANOSECONDS`
//   codec-bench run INPUTS MESSAGE OPERATION COUNT

import Glibc
import VencejoJSON
import VencejoProtobuf

/// One of the messages, and what can be done with it.
struct Subject {
  let name: String
  let operations: [(name: String, run: (Int) -> Void)]
  let results: () -> [(suffix: String, bytes: [UInt8])]
}

func subject<M: Message>(_ name: String, _: M.Type, _ inputs: String) -> Subject {
  let bytes = read("\(inputs)/\(name).bin")
  let json = String(decoding: read("\(inputs)/\(name).json"), as: UTF8.self)
  let message = must { try M(serializedBytes: bytes) }
  return Subject(
    name: name,
    operations: [
      ("encode", { for _ in 0..<$0 { keep(message.serializedBytes()) } }),
      ("decode", { count in must { for _ in 0..<count { keep(try M(serializedBytes: bytes)) } } }),
      ("json-encode", { count in must { for _ in 0..<count { keep(try message.jsonString()) } } }),
      (
        "json-decode",
        { count in must { for _ in 0..<count { keep(try M(jsonString: json)) } } }
      ),
    ],
    results: {
      [
        ("bin", message.serializedBytes()),
        ("json", Array(must { try message.jsonString() }.utf8)),
        ("fromjson", must { try M(jsonString: json) }.serializedBytes()),
      ]
    })
}

/// Keeps the optimiser from leaving the work out.
@inline(never)
func keep<T>(_ value: T) {}

func must<T>(_ body: () throws -> T) -> T {
  do {
    return try body()
  } catch {
    stop("\(error)")
  }
}

func stop(_ why: String) -> Never {
  perror("codec-bench: \(why)")
  exit(1)
}

func read(_ path: String) -> [UInt8] {
  guard let file = fopen(path, "rb") else {
    stop("cannot read \(path)")
  }
  defer { fclose(file) }
  fseek(file, 0, SEEK_END)
  let size = ftell(file)
  rewind(file)
  return [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
    count = fread(buffer.baseAddress, 1, size, file)
  }
}

func write(_ bytes: [UInt8], to path: String) {
  guard let file = fopen(path, "wb") else { exit(1) }
  fwrite(bytes, 1, bytes.count, file)
  fclose(file)
}

func nanoseconds() -> Int {
  var time = timespec()
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
  return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

func subjects(_ inputs: String) -> [Subject] {
  [
    subject("chat", Bench.ChatMessage.self, inputs),
    subject("record", Bench.Record.self, inputs),
    subject("packed", Bench.Packed.self, inputs),
    subject("blob", Bench.Blob.self, inputs),
    subject("descriptor", Google.FileDescriptorProto.self, inputs),
    subject("struct", Google.Struct.self, inputs),
  ]
}

let arguments = CommandLine.arguments
switch arguments.dropFirst().first {
case "check" where arguments.count == 4:
  for subject in subjects(arguments[2]) {
    for result in subject.results() {
      write(result.bytes, to: "\(arguments[3])/\(subject.name).\(result.suffix)")
    }
  }
case "time" where arguments.count == 4:
  let limit = (Int(arguments[3]) ?? 20) * 1_000_000
  for subject in subjects(arguments[2]) {
    for operation in subject.operations {
      operation.run(1)
      var count = 1
      var time = 0
      while true {
        let start = nanoseconds()
        operation.run(count)
        time = nanoseconds() - start
        if time >= limit { break }
        count = time < limit / 100 ? count * 10 : max(count + 1, count * limit / time + 1)
      }
      print(subject.name, operation.name, Double(time) / Double(count))
    }
  }
case "run" where arguments.count == 6:
  let all = subjects(arguments[2])
  guard let subject = all.first(where: { $0.name == arguments[3] }),
    let operation = subject.operations.first(where: { $0.name == arguments[4] }),
    let count = Int(arguments[5])
  else { stop("no such message or operation") }
  operation.run(count)
default:
  stop("usage: codec-bench check|time|run INPUTS …")
}
