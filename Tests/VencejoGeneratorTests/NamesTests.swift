import Testing
import VencejoProtobuf

@testable import VencejoGenerator

struct NamesTests {
  @Test(arguments: [
    ("display_name", "displayName"), ("id", "id"), ("URL", "url"), ("HTTPRule", "httpRule"),
    ("a1_b2", "a1B2"), ("GetChat", "getChat"), ("_x", "x"), ("1st", "n1st"),
  ])
  func lowerCamel(name: String, swift: String) {
    #expect(Names.lowerCamel(name) == swift)
  }

  @Test func collisions() {
    #expect(Names.property("self") == "selfField")
    #expect(Names.property("unknown_fields") == "unknownFieldsField")
    #expect(Names.property("default") == "`default`")
    #expect(Names.message("Type") == "TypeMessage")
    #expect(Names.enumeration("Type") == "TypeEnum")
    #expect(Names.method("Init") == "initMethod")
    #expect(Names.oneofCase("none") == "noneCase")
  }

  private func values(_ name: String, _ values: String...) -> [String] {
    Names.values(
      of: .init(name: name, value: values.enumerated().map { .init(name: $1, number: Int32($0)) }))
  }

  @Test func enumValues() {
    #expect(
      values("ServerRole", "SERVER_ROLE_UNSPECIFIED", "SERVER_ROLE_MEMBER")
        == ["unspecified", "member"])
    // Without a prefix, and with one that leaves digits.
    #expect(values("Status", "UNKNOWN", "NOT_SERVING") == ["unknown", "notServing"])
    #expect(values("Version", "VERSION_1", "VERSION_2") == ["version1", "version2"])
    #expect(values("HTTPVersion", "HTTP_VERSION_OLD") == ["old"])
    #expect(values("Kind", "KIND_NONE", "KIND_DEFAULT") == ["noneValue", "`default`"])
    // A value that would collide without its prefix.
    #expect(values("A", "A_B", "B") == ["aB", "b"])
  }
}
