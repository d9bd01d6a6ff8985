import Glibc
import InteropEcho
import Synchronization
import Testing
import VencejoDescriptors
import VencejoHTTP2
import VencejoJSON
import VencejoProtobuf
import VencejoRPC

@testable import VencejoTools

/// Collects what a command writes.
final class Transcript: Sendable {
  private let texts = Mutex((out: "", error: ""))

  var output: Output {
    Output(
      out: { text in self.texts.withLock { $0.out += text } },
      error: { text in self.texts.withLock { $0.error += text } })
  }

  var out: String { texts.withLock { $0.out } }
  var error: String { texts.withLock { $0.error } }
}

@Suite("vencejo call and list")
struct CommandTests {
  private func withServer(
    _ services: [any Service] = [Echo(), Health(), Reflection()],
    _ body: (String) async throws -> Void
  ) async throws {
    let server = try Server(
      listening: [SocketAddress(parsing: "127.0.0.1:0")], services: services)
    try await body("\(server.addresses[0])")
    await server.shutdown()
  }

  private func call(_ arguments: String...) async -> (code: Int32, out: String, error: String) {
    let transcript = Transcript()
    let code = await CallCommand.run(arguments, transcript.output)
    return (code, transcript.out, transcript.error)
  }

  @Test func whatServersSayCommandsNoTerminal() async throws {
    try await withServer { address in
      let failed = await call(
        address, "vencejo.interop.v1.Echo/Unary", "-d",
        #"{"failure":{"code":5,"message":"a\u001b[2J\u009b31m\u202eb\nhint: none"}}"#)
      #expect(failed.code == 69)
      #expect(failed.error == "error: NOT_FOUND: a␛[2J\u{FFFD}31mb hint: none\n")
      let unknown = Transcript()
      #expect(await ListCommand.run([address, "no.Such"], unknown.output) == 69)
      #expect(unknown.error == "error: NOT_FOUND: the server has no service no.Such\n")
    }
  }

  @Test func listsServicesAndMethods() async throws {
    try await withServer { address in
      let services = Transcript()
      #expect(await ListCommand.run([address], services.output) == 0)
      #expect(
        services.out == """
          grpc.health.v1.Health
          grpc.reflection.v1.ServerReflection
          grpc.reflection.v1alpha.ServerReflection
          vencejo.interop.v1.Echo

          """)
      let methods = Transcript()
      #expect(await ListCommand.run([address, "grpc.health.v1.Health"], methods.output) == 0)
      #expect(
        methods.out.split(separator: "\n").contains(
          "Watch(grpc.health.v1.HealthCheckRequest) returns "
            + "(stream grpc.health.v1.HealthCheckResponse)"))
    }
  }

  @Test func callsEveryShape() async throws {
    try await withServer { address in
      let unary = await call(
        address, "vencejo.interop.v1.Echo/Unary", "-d", #"{"payload": "AQI="}"#)
      #expect(unary.code == 0)
      #expect(unary.out == #"{"payload":"AQI=","deadlineMilliseconds":"-1"}"# + "\n")

      let stream = await call(
        address, "vencejo.interop.v1.Echo.ServerStream", "-d", #"{"response_count": 3}"#)
      #expect(stream.code == 0)
      #expect(stream.out.split(separator: "\n").count == 3)

      let sum = await call(
        address, "vencejo.interop.v1.Echo/ClientStream", "-d",
        #"{"payload":"AQ=="} {"payload":"AQID"}"#)
      #expect(sum.code == 0)
      #expect(sum.out.contains(#""requestCount":2,"requestBytes":"4""#))

      let none = await call(address, "vencejo.interop.v1.Echo/ClientStream")
      #expect(none.code == 0)

      let talk = await call(
        address, "vencejo.interop.v1.Echo/Bidirectional", "-d", "{}{}")
      #expect(talk.code == 0)
      #expect(talk.out.split(separator: "\n").count == 2)
    }
  }

  @Test func metadataAndTrailersAreShownOnRequest() async throws {
    try await withServer { address in
      let result = await call(
        address, "vencejo.interop.v1.Echo/Unary", "-v", "-H", "x-initial-a: one", "--header",
        "x-trailing-b-bin:AQID")
      #expect(result.code == 0)
      #expect(result.error.contains("x-initial-a: one"))
      #expect(result.error.contains("x-trailing-b-bin: AQID (3 bytes)"))
    }
  }

  @Test func aStatusIsTheExitCodeAndItsDetailsAreShown() async throws {
    try await withServer { address in
      let result = await call(
        address, "vencejo.interop.v1.Echo/Unary", "-d",
        #"""
        {"failure": {"code": 9, "message": "not now", "details": [
          {"@type": "type.googleapis.com/vencejo.interop.v1.EchoResponse", "index": 7}]}}
        """#)
      #expect(result.code == 64 + 9)
      #expect(result.out.isEmpty)
      #expect(result.error.contains("FAILED_PRECONDITION: not now"))
      #expect(result.error.contains(#"vencejo.interop.v1.EchoResponse {"index":7}"#))
    }
  }

  /// What is packed in an Any may be declared in a file that the method's does not name.
  @Test func typesOfOtherFilesAreAskedFor() async throws {
    let packed = #"{"@type":"type.googleapis.com/grpc.health.v1.HealthCheckResponse","status":"#
    try await withServer { address in
      let result = await call(
        address, "vencejo.interop.v1.Echo/Unary", "--format-error", "-d",
        #"{"failure": {"code": 9, "details": ["# + packed + #""SERVING"}]}}"#)
      #expect(result.code == 64 + 9)
      #expect(result.error.contains(packed + #""SERVING"}"#), "\(result.error)")
      let text = await call(
        address, "vencejo.interop.v1.Echo/Unary", "--format", "text", "-d",
        "failure { code: 9 details { [a.example/grpc.health.v1.HealthCheckResponse] { status: 1 } } }"
      )
      #expect(text.error.contains(#"grpc.health.v1.HealthCheckResponse {"status":"SERVING"}"#))
      let unknown = await call(
        address, "vencejo.interop.v1.Echo/Unary", "-d",
        #"{"failure": {"details": [{"@type": "a.example/no.Such"}]}}"#)
      #expect(unknown.code == 1 && unknown.error.contains("no.Such"))
    }
  }

  @Test func anAnyOfAnUnknownTypeIsShownByItsBytes() async throws {
    let pool = try DescriptorPool(GoogleRPC.statusProto)
    let type = try #require(pool.message("google.rpc.Status"))
    var status = GoogleRPC.Status(code: 5)
    for (url, value) in [("a.example/no.Such", [1, 2]), ("a.example/no.Other", [])] {
      var detail = Google.AnyMessage()
      detail.typeUrl = url
      detail.value = value.map { UInt8($0) }
      status.details.append(detail)
    }
    let shown = try await PackedTypes(.files(pool), pool).json(
      status.serializedBytes(), as: type, .init())
    let first = #"{"@type":"a.example/no.Such","@value":"AQI="}"#
    let second = #"{"@type":"a.example/no.Other","@value":""}"#
    #expect(shown == #"{"code":5,"details":["# + first + "," + second + "]}")
  }

  @Test(arguments: [
    (#"{"@type" : "x/a.B", "c": [{"@type":"x/y/d.E"}]}"#, MessageForm.json, ["a.B", "d.E"]),
    (#"{"@type": 5, "@type": "plain", "@type": "x/un"#, .json, []),
    ("a { [x.example/a.B] { b: 1 } } [ext.name]: 2 [1, 2] [x/c.D] {}", .text, ["a.B", "c.D"]),
    ("[x/open", .text, []),
  ])
  func packedNames(_ text: String, _ form: MessageForm, _ names: [String]) {
    #expect(PackedTypes.names(in: text, form) == names)
  }

  @Test(arguments: [
    ("EchoRequest.payload", "bytes payload = 1;"), ("EchoRequest.none", "NOT_FOUND"),
    ("Failure.details", "repeated google.protobuf.Any details = 3;"),
  ])
  func describesParts(_ symbol: String, _ wanted: String) async throws {
    try await withServer { address in
      let transcript = Transcript()
      _ = await DescribeCommand.run(
        [address, "vencejo.interop.v1.\(symbol)"], transcript.output)
      #expect((transcript.out + transcript.error).contains(wanted))
    }
  }

  /// Of files: every kind of part, and what a message reserves.
  @Test func describesWhatFilesDeclare() async throws {
    var file = Google.FileDescriptorProto(name: "a.proto", package: "p", syntax: "proto2")
    var message = Google.DescriptorProto(name: "M")
    message.field = [
      .init(
        name: "one_two", number: 1, label: .optional, type: .string, oneofIndex: 0, jsonName: "odd"),
      .init(name: "three", number: 3, label: .repeated, type: .int32, jsonName: "three"),
    ]
    message.oneofDecl = [.init(name: "choice")]
    message.reservedRange = [.init(start: 5, end: 6), .init(start: 7, end: 10)]
    message.reservedName = ["gone"]
    message.extensionRange = [.init(start: 100, end: 536_870_912)]
    let kind = Google.EnumDescriptorProto(name: "Kind", value: [.init(name: "RED", number: 0)])
    message.enumType = [kind]
    file.messageType = [message]
    file.enumType = [Google.EnumDescriptorProto(name: "Top", value: [.init(name: "UP", number: 0)])]
    file.extension = [
      .init(
        name: "more", number: 100, label: .optional, type: .bool, extendee: ".p.M", jsonName: "more"
      )
    ]
    let path = "/tmp/vencejo-describe-\(UInt64.random(in: 0 ... .max)).pb"
    try ProtoFiles.write(Google.FileDescriptorSet(file: [file]).serializedBytes(), to: path)
    defer { unlink(path) }
    for (symbol, wanted) in [
      (
        "p.M",
        """
        message p.M {
          reserved 5, 7 to 9;
          reserved "gone";
          extensions 100 to max;
          oneof choice {
            string one_two = 1 [json_name = "odd"];
          }
          repeated int32 three = 3;
        }

        """
      ),
      ("p.M.one_two", "string one_two = 1 [json_name = \"odd\"];\n"),
      ("p.M.choice", "oneof choice {\n  string one_two = 1 [json_name = \"odd\"];\n}\n"),
      ("p.M.RED", "RED = 0;\n"), ("p.M.Kind.RED", "RED = 0;\n"), ("p.UP", "UP = 0;\n"),
      ("p.more", "extend p.M {\n  optional bool more = 100;\n}\n"),
    ] {
      let transcript = Transcript()
      let code = await DescribeCommand.run([symbol, "--protoset", path], transcript.output)
      #expect(code == 0 && transcript.out == wanted, "\(symbol) \(transcript.error)")
    }
  }

  @Test func aTimeoutIsADeadline() async throws {
    try await withServer { address in
      let result = await call(
        address, "vencejo.interop.v1.Echo/Unary", "--timeout", "0.5", "-d",
        #"{"delayMilliseconds": 60000}"#)
      #expect(result.code == 64 + 4)
    }
  }

  @Test(arguments: [
    ([], "needs an address"),
    (["ADDRESS"], "needs an address"),
    (["ADDRESS", "vencejo.interop.v1.Echo/Unary", "--dta", "{}"], "did you mean --data?"),
    (["ADDRESS", "vencejo.interop.v1.Echo/Unary", "-d"], "needs a value"),
    (["ADDRESS", "vencejo.interop.v1.Echo/Unary", "-d", "{"], "stays open"),
    (["ADDRESS", "vencejo.interop.v1.Echo/Unary", "-d", "nonsense"], "no JSON object"),
    (["ADDRESS", "vencejo.interop.v1.Echo/Unary", "-d", "{}}"], "never opened"),
    (["ADDRESS", "vencejo.interop.v1.Echo/Unary", "-d", "{} {}"], "2 requests"),
    (["ADDRESS", "vencejo.interop.v1.Echo/Unary", "-d", #"{"nothing": 1}"#], "nothing"),
    (["ADDRESS", "vencejo.interop.v1.Echo/Unary", "-H", "nocolon"], "no header"),
    (["ADDRESS", "vencejo.interop.v1.Echo/Unary", "-H", "a-bin:!"], "no base64"),
    (["ADDRESS", "vencejo.interop.v1.Echo/Unary", "-H", "grpc-timeout:1S"], "is reserved"),
    (["ADDRESS", "vencejo.interop.v1.Echo/Unary", "-H", "a:ñ"], "not printable ASCII"),
    (["ADDRESS", "vencejo.interop.v1.Echo/Unary", "--timeout", "soon"], "no number of seconds"),
    (["ADDRESS", "vencejo.interop.v1.Ecoh/Unary"], "did you mean vencejo.interop.v1.Echo?"),
    (["ADDRESS", "vencejo.interop.v1.Echo/Nothing"], "has no method Nothing"),
    (["ADDRESS", "nothing"], "is no method"),
  ])
  func wrongUsageIsExplained(_ arguments: [String], _ explanation: String) async throws {
    try await withServer { address in
      let transcript = Transcript()
      let code = await CallCommand.run(
        arguments.map { $0 == "ADDRESS" ? address : $0 }, transcript.output)
      #expect(code == ExitCode.usage)
      #expect(transcript.out.isEmpty)
      #expect(transcript.error.contains(explanation), "\(transcript.error)")
    }
  }

  @Test func aServerWithoutReflectionIsToldSo() async throws {
    try await withServer([Echo()]) { address in
      let result = await call(address, "vencejo.interop.v1.Echo/Unary")
      #expect(result.code == 64 + 12)
      #expect(result.error.contains("no reflection"))
    }
  }

  @Test func nobodyAtTheAddressIsUnavailable() async throws {
    let result = await call("127.0.0.1:1", "a.B/C")
    #expect(result.code == 64 + 14)
    #expect(result.error.contains("hint: is the server running"))
  }
}

@Suite("Messages in what is typed")
struct SplitterTests {
  private func split(
    _ text: String, _ form: MessageForm, piece: Int
  ) throws -> [String] {
    var splitter = MessageSplitter(form)
    var found: [String] = []
    let bytes = Array(text.utf8)
    for start in stride(from: 0, to: bytes.count, by: piece) {
      found += try splitter.feed(Array(bytes[start..<min(start + piece, bytes.count)]))
    }
    if let last = try splitter.end() { found.append(last) }
    return found
  }

  @Test(arguments: [1, 2, 3, 7, 1_000])
  func bracketsInStringsDoNotCount(_ piece: Int) throws {
    let text = #" {"a":"}\"{"}  [1,[2]]{"b":{}} "#
    #expect(
      try split(text, .json, piece: piece) == [#"{"a":"}\"{"}"#, "[1,[2]]", #"{"b":{}}"#])
    #expect(try split(" \n", .json, piece: piece).isEmpty)
  }

  @Test(arguments: [1, 4, 1_000])
  func textsEndAtTheRecordSeparator(_ piece: Int) throws {
    #expect(try split("a: 1\n\u{1e}a: 2", .text, piece: piece) == ["a: 1\n", "a: 2"])
    #expect(try split("a: 1\n\u{1e}\n", .text, piece: piece) == ["a: 1\n"])
    #expect(try split("", .text, piece: piece).isEmpty)
    // One message of no fields.
    #expect(try split("\u{1e}", .text, piece: piece) == [""])
  }
}

@Suite struct EditDistanceTests {
  /// Counted by hand.
  @Test(arguments: [
    ("", "", 0), ("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("sned", "send", 1),
    ("abcd", "badc", 2), ("ca", "abc", 3), ("chats", "chats", 0),
  ])
  func counts(_ left: String, _ right: String, _ wanted: Int) {
    #expect(editDistance(left, right) == wanted)
    #expect(editDistance(right, left) == wanted)
  }
}
