import VencejoProtobuf

/// The messages the suite may ask for, and the same messages rewritten in edition 2023.
let syntaxTypes: [any Message.Type] = [
  Proto2.TestAllTypesProto2.self, Proto3.TestAllTypesProto3.self,
]
let editionTypes: [any Message.Type] = [
  Editions2.TestAllTypesProto2.self, Editions3.TestAllTypesProto3.self,
]

/// Their files and what those import.
let syntaxFiles = imports + [Proto2.testMessagesProto2Proto, Proto3.testMessagesProto3Proto]
let editionFiles =
  imports + [Editions2.testMessagesProto2EditionsProto, Editions3.testMessagesProto3EditionsProto]
private let imports = [
  Google.anyProto, Google.durationProto, Google.fieldMaskProto, Google.structProto,
  Google.timestampProto, Google.wrappersProto,
]
