import InteropEcho
import Testing
import VencejoDescriptors
import VencejoJSON
import VencejoProtobuf
import VencejoRPC

@testable import VencejoTools

@Suite("Templates of messages")
struct TemplateTests {
  /// JSON's own reader is the judge: what it takes is a message.
  @Test func everyTemplateIsAMessage() throws {
    let pool = try DescriptorPool(
      Google.structProto, Google.wrappersProto, Google.timestampProto, Google.durationProto,
      Google.fieldMaskProto, Google.anyProto, Google.emptyProto, Google.descriptorProto,
      Google.typeProto, Google.apiProto, GoogleRPC.statusProto, GoogleRPC.errorDetailsProto,
      Interop.interopProto, GRPCChannelz.channelzProto)
    var options = JSONOptions()
    options.types = pool
    #expect(pool.messageNames.count > 80)
    for name in pool.messageNames {
      let type = try #require(pool.message(name))
      let template = MessageTemplate.json(of: type)
      #expect(throws: Never.self, "\(name): \(template)") {
        _ = try JSONFormat.decode(template, as: type, options)
      }
      // All but the later members of oneofs are there, unless it is a type of JSON's own.
      if template.hasPrefix("{\n") {
        for field in type.fields
        where field.proto.oneofIndex == nil || field.proto.proto3Optional == true {
          #expect(template.contains("\"\(field.jsonName)\": "), "\(name).\(field.name)")
        }
      }
    }
  }
}
