import Glibc
import InteropEcho
import Testing
import VencejoProtobuf

@testable import VencejoTools

@Suite("vencejo proto")
struct ProtoCommandTests {
  /// A folder for one test's files.
  private func inFolder(_ body: (String) throws -> Void) throws {
    var template = Array("/tmp/vencejo-proto-XXXXXX".utf8CString)
    let folder = try #require(mkdtemp(&template).map { String(cString: $0) })
    defer {
      for name in ["in", "out", "shop.proto", "set"] { unlink("\(folder)/\(name)") }
      rmdir(folder)
    }
    try body(folder)
  }

  private func run(_ arguments: String...) -> (code: Int32, out: String, error: String) {
    let transcript = Transcript()
    let code = ProtoCommand.run(arguments, transcript.output)
    return (code, transcript.out, transcript.error)
  }

  private static let shop = """
    syntax = "proto2";
    package shop;
    message Order {
      required int32 id = 1;
      optional string note = 2 [default = "none"];
      map<string, Size> sizes = 3;
      oneof by { int32 table = 4; Order parent = 5; }
      extensions 100 to 200;
    }
    extend Order { repeated sint32 codes = 100 [packed = true]; }
    enum Size { SMALL = 0; LARGE = 1; }
    """

  private static let protocIsThere = system("command -v protoc >/dev/null") == 0

  @Test func decodesWithoutType() throws {
    try inFolder { folder in
      try ProtoFiles.write([0x08, 5, 0x12, 2, 8, 1, 0x1A, 1, 0x41], to: "\(folder)/in")
      let result = run("decode", "--input", "\(folder)/in")
      #expect(result.code == 0 && result.out == "1: 5\n2 {\n  1: 1\n}\n3: \"A\"\n")
      #expect(run("decode", "--to", "json", "--input", "\(folder)/in").code == 1)
      try ProtoFiles.write([0x08], to: "\(folder)/in")
      let broken = run("decode", "--input", "\(folder)/in")
      #expect(broken.code == 1 && broken.error.contains("truncated at byte 1"))
    }
  }

  @Test(.enabled(if: protocIsThere)) func convertsTypesOfAFile() throws {
    try inFolder { folder in
      try ProtoFiles.write(Array(Self.shop.utf8), to: "\(folder)/shop.proto")
      let schema = ["--proto", "shop.proto", "--include", folder]
      let text = "id: 7\nsizes {\n  key: \"a\"\n  value: LARGE\n}\ntable: 3\n[shop.codes]: -1\n"
      try ProtoFiles.write(Array(text.utf8), to: "\(folder)/in")
      let encoded = Transcript()
      let files = ["--input", "\(folder)/in", "--output", "\(folder)/out"]
      #expect(
        ProtoCommand.run(
          ["encode", "shop.Order", "--from", "text"] + schema + files, encoded.output)
          == 0)
      #expect(
        try ProtoFiles.read("\(folder)/out")
          == [0x08, 7, 0x1A, 5, 0x0A, 1, 0x61, 0x10, 1, 0x20, 3, 0xA2, 6, 1, 1])
      let decoded = Transcript()
      let input = ["--input", "\(folder)/out"]
      #expect(
        ProtoCommand.run(["decode", "shop.Order", "--compact"] + schema + input, decoded.output)
          == 0)
      #expect(
        decoded.out == #"{"id":7,"sizes":{"a":"LARGE"},"table":3,"[shop.codes]":[-1]}"# + "\n")
      let back = Transcript()
      #expect(
        ProtoCommand.run(["decode", "shop.Order", "--to", "text"] + schema + input, back.output)
          == 0)
      #expect(back.out == text)
      let described = Transcript()
      #expect(ProtoCommand.run(["describe", "shop.Order"] + schema, described.output) == 0)
      #expect(
        described.out == """
          message shop.Order {
            extensions 100 to 200;
            required int32 id = 1;
            optional string note = 2 [default = none];
            map<string, shop.Size> sizes = 3;
            oneof by {
              int32 table = 4;
              shop.Order parent = 5;
            }
          }

          """)
    }
  }

  @Test func usesDescriptorSets() throws {
    try inFolder { folder in
      let files = Interop.interopProto.dependencies + [Interop.interopProto]
      let set = Google.FileDescriptorSet(
        file: try files.map { try Google.FileDescriptorProto(serializedBytes: $0.serialized) })
      try ProtoFiles.write(set.serializedBytes(), to: "\(folder)/set")
      let result = run("describe", "--descriptors", "\(folder)/set")
      #expect(result.code == 0 && result.out.contains("vencejo.interop.v1.Echo\n"))
    }
  }

  @Test func mistakes() {
    #expect(run().code == 1)
    #expect(run("nonsense").code == 1)
    #expect(run("encode").error.contains("needs a type"))
    #expect(run("convert", "google.protobuf.Duration").error.contains("needs --from"))
    #expect(run("decode", "google.protobuf.Nothing").error.contains("no file declares"))
    #expect(run("decode", "google.protobuf.Duration", "--to", "xml").error.contains("not 'xml'"))
    #expect(run("describe", "google.protobuf.Duration").out.contains("int64 seconds = 1;"))
    #expect(run("describe", "google.protobuf.NullValue").out.contains("NULL_VALUE = 0;"))
    #expect(run("--help").code == 0)
  }
}
