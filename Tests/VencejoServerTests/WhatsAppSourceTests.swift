import TestSupport
import Testing
import VencejoAPI
import VencejoProtobuf
import VencejoRPC
import VencejoServer
import VencejoStore

/// Whole exports, as phones send them, of Tests/WhatsApp: what becomes of them in a chat.
@Suite struct WhatsAppSourceTests {
  private static let folder: String = {
    var parts = #filePath.split(separator: "/", omittingEmptySubsequences: false)
    parts.removeLast(2)
    return parts.joined(separator: "/") + "/WhatsApp"
  }()

  /// Digests of the files as `sha256sum` tells them.
  private static let photo = "0d73124c7330fe9214438912381334146c3ac8c873157989c7ca1e84bbafafb6"
  private static let voice = "44f4b54fccb33bee6115cc8754d75fc553e99e245f70deb4f172b86563f73eee"
  private static let plan = "e41efc63441caa00a1e8a8cc058d4df3021845cd63cdaf59bfa8123e401c252d"
  private static let card = "83da1cd4bec6eaa295c185ba0b1482455df4296453f660b10b736e2d068b2794"

  /// A message in one line: who, when after 21:40, what, and which file.
  private func shown(_ message: Chat.Message, _ people: [String: String], _ ana: Person)
    async throws -> String
  {
    let minute = ((message.sendTime?.seconds ?? 0) - 1_704_055_200) / 60
    var line = "\(people[message.sender] ?? "-") \(minute) "
    if message.deleteTime != nil { return line + "deleted" }
    if message.editCount > 0 { line += "edited " }
    switch message.content?.kind {
    case .text(let text)?: line += text.text.replacing("\n", with: "|")
    case .system(let system)?: line += system.text
    case .media(let media)?:
      line += media.caption
      for name in media.attachments {
        let attachment = try await ana.chat.getAttachment(.with { $0.name = name }, ana.options)
          .attachment
        let digest = (attachment?.sha256 ?? []).map {
          ($0 < 16 ? "0" : "") + String($0, radix: 16)
        }.joined()
        var bytes = 0
        let call = ana.chat.downloadAttachment(.with { $0.name = name }, ana.options)
        for try await part in call {
          if case .chunk(let chunk)? = part.payload { bytes += chunk.count }
        }
        line +=
          "[\(attachment?.fileName ?? "") \(attachment?.contentType ?? "") \(bytes) \(digest)]"
      }
    default: line += "?"
    }
    return line
  }

  private func bring(_ file: String, times: Int = 1) async throws -> [String] {
    let world = try World()
    let (ana, ben) = (try await world.person("ana"), try await world.person("ben"))
    // The folder is taken over by the command, which no server may be using.
    world.backend.drain()
    await world.server.shutdown()
    world.backend.close()
    defer { TemporaryFolder.remove(world.path) }
    let source = try WhatsAppSource(path: "\(Self.folder)/\(file)")
    var outcome: Backend.ImportOutcome?
    for round in 0..<times {
      outcome = try await Backend.importChat(
        source, owner: "ana", senders: ["Ana": "ana", "Ben": "ben"], title: "T",
        utcOffset: 3_600_000_000, inDataFolder: world.path + "/data")
      #expect(outcome?.warnings == [])
      if round > 0 { #expect(outcome?.imported == 0) }
    }
    let again = try World({ $0.directory = world.path + "/data" })
    let options = try await again.signIn("ana")
    let reader = Person(
      channel: try again.channel(), name: ana.name,
      tokens: .with {
        $0.accessToken = String((options.metadata["authorization"] ?? "").dropFirst(7))
      })
    let messages = try await reader.chat.listMessages(
      .with {
        $0.parent = "chats/\(outcome?.chat ?? "")"
        $0.pageSize = 200
      }, options
    ).messages
    var lines: [String] = []
    for message in messages {
      lines.append(try await shown(message, [ana.name: "ana", ben.name: "ben"], reader))
    }
    await again.end()
    return lines
  }

  /// Line by line, so that a difference can be read.
  private func expectSame(_ lines: [String], _ expected: [String]) {
    #expect(lines.count == expected.count)
    for (line, should) in zip(lines, expected) { #expect(line == should) }
  }

  @Test func anArchiveOfIOS() async throws {
    expectSame(
      try await bring("ios-es.zip", times: 2),
      [
        "- 0 Los mensajes y las llamadas están cifrados de extremo a extremo.",
        "ana 0 ¿vamos a la playa? 🏖️",
        "ben 0 [00000002-PHOTO-2023-12-31-21-40-30.jpg image/jpeg 9004 \(Self.photo)]",
        "ana 1 el plan|con dos líneas",
        "ana 2 [00000004-plan.pdf application/pdf 18909 \(Self.plan)]",
        "ben 3 [00000005-AUDIO-2023-12-31-21-43-10.opus audio/ogg 3004 \(Self.voice)]",
        "ben 4 deleted", "ana 5 edited mejor el lunes",
        "ana 6 ENCUESTA:|¿Dónde?|OPCIÓN: Roma (2 votos)|OPCIÓN: Oslo (0 votos)",
        "ben 7 Ubicación: https://maps.google.com/?q=41.9,12.5",
        "ben 8 [00000010-Cleo.vcf text/vcard 59 \(Self.card)]", "ben 9 (attachment)",
      ])
  }

  /// In a folder, with another text in it that looks like a chat, and sizes of 64 bits.
  @Test func anArchiveOfAndroid() async throws {
    expectSame(
      try await bring("android-de.zip"),
      [
        "- 0 Nachrichten und Anrufe sind Ende-zu-Ende-verschlüsselt. Tippe, um mehr zu erfahren.",
        "ana 1 Hallo", "ben 2 am Strand[IMG-20231231-WA0001.jpg image/jpeg 9004 \(Self.photo)]",
        "ana 3 (attachment)",
        "ben 4 [PTT-20231231-WA0002.opus audio/ogg 3004 \(Self.voice)]", "ana 5 deleted",
        "- 6 Ben hat Cleo hinzugefügt.",
        "ana 7 [notes.txt text/plain 46 "
          + "552c4a8bf865270b8fd33cf1aac3acddd30208e173dc966189c1c7f8a1ed8d92]",
        "ben 8 edited bis 20:00: Essen",
      ])
  }

  @Test func whatIsNoExportIsRefused() {
    for name in ["", "nothing.zip"] {
      #expect(throws: StoreError.self) { try WhatsAppSource(path: "\(Self.folder)/\(name)/none") }
    }
  }
}
