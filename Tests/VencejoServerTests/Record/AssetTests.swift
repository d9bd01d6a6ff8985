import Testing
import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC
import VencejoServer
import VencejoStore

/// Files in fields through the real client.
@Suite(.timeLimit(.minutes(1))) struct AssetTests {
  private let notes = "containers/notes/databases/private"

  private func upload(_ bytes: [UInt8], by person: Person) async throws -> Record.Asset {
    let call = person.records.uploadAsset(person.options)
    try await call.send(
      .init(
        payload: .header(
          .init(
            uploadId: "\(UUID.v7())", fileName: "a.txt", contentType: "text/plain",
            sizeBytes: Int64(bytes.count), sha256: SHA256.digest(bytes)))))
    try await call.send(.init(payload: .chunk(bytes)))
    call.finish()
    return try #require(try await call.response.asset)
  }

  private func download(_ record: String, _ field: String, _ index: Int32 = 0, by person: Person)
    async throws -> [UInt8]
  {
    var bytes: [UInt8] = []
    for try await frame in person.records.downloadAsset(
      .init(record: record, field: field, listIndex: index), person.options)
    {
      if case .chunk(let chunk)? = frame.payload { bytes += chunk }
    }
    return bytes
  }

  @Test func whoReadsTheRecordReadsItsFiles() async throws {
    let clock = TestClock()
    try await withWorld({
      $0.store.clock = { clock.now }
      $0.sweepInterval = .seconds(3600)
    }) { world in
      let ana = try await world.person("ana")
      let ben = try await world.person("ben")
      let zone = try await ana.makeZone("z", in: notes)
      let name = "\(zone.name)/records/a"
      let content = Array("a file of ana's".utf8)
      let asset = try await upload(content, by: ana)
      let other = try await upload([1, 2, 3], by: ana)
      let named = Record.Value(kind: .assetValue(.init(assetId: asset.assetId)))
      let saved = try await ana.save(
        name,
        [
          "file": named,
          "files": .init(
            kind: .listValue(
              .init(values: [.init(kind: .assetValue(.init(assetId: other.assetId))), named]))),
        ])
      // The server says what it is, whatever the client claims.
      #expect(saved.fields["file"] == .init(kind: .assetValue(asset)))
      #expect(try await download(name, "file", by: ana) == content)
      #expect(try await download(name, "files", 0, by: ana) == [1, 2, 3])
      #expect(try await download(name, "files", 1, by: ana) == content)
      await expect(.notFound, "ASSET_NOT_FOUND", "record.vencejo") {
        _ = try await download(name, "files", 2, by: ana)
      }
      await expect(.permissionDenied, "NOT_YOUR_DATABASE", "record.vencejo") {
        _ = try await download(name, "file", by: ben)
      }
      // To know its name is not to have it.
      let own = try await ben.makeZone("z", in: notes)
      let stolen = try await ben.modify(notes, [.save("\(own.name)/records/b", ["file": named])])
      #expect(stolen.results[0].reason == "ASSET_NOT_FOUND")
      var usage = try await ana.records.getUsage(.init(name: notes), ana.options)
      #expect(usage.recordCount == 1 && usage.assetCount == 2)
      #expect(usage.assetBytes == Int64(content.count + 3) && usage.quotaBytes == 10 << 30)
      // Shared, it may be read and put into another record of the share.
      let made = try await ana.records.createShare(
        .init(
          parent: notes, share: .init(scope: .zone(zone.name), publicPermission: .readWrite)),
        ana.options)
      _ = try await ben.records.acceptShare(.init(link: made.share?.link ?? ""), ben.options)
      #expect(try await download(name, "file", by: ben) == content)
      _ = try await ben.save("\(zone.name)/records/b", ["file": named])
      // What nothing holds any more is collected a day later.
      for id in ["a", "b"] {
        _ = try await ana.records.modifyRecords(
          .init(
            parent: notes,
            operations: [.init(operation: .delete(.init(name: "\(zone.name)/records/\(id)")))]),
          world.signIn("ana"))
        clock.advance(seconds: 86_401)
        try await world.backend.store.collectAttachments()
        let again = try await world.signIn("ana")
        let response = try await ana.records.modifyRecords(
          .init(
            parent: notes, operations: [.save("\(zone.name)/records/\(id)2", ["file": named])],
            validateOnly: true), again)
        #expect(response.results[0].reason == (id == "a" ? nil : "ASSET_NOT_FOUND"))
      }
      let again = try await world.signIn("ana")
      usage = try await ana.records.getUsage(.init(name: notes), again)
      #expect(usage.recordCount == 0 && usage.assetCount == 0 && usage.assetBytes == 0)
      #expect(usage.recordBytes == 0)
    }
  }

  @Test func aDatabaseHoldsNoMoreThanItsQuota() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let zone = try await ana.makeZone("z", in: notes)
      func note(_ size: Int) -> [String: Record.Value] {
        ["text": .init(kind: .stringValue(String(repeating: "x", count: size)))]
      }
      _ = try await ana.save("\(zone.name)/records/a", note(1_000))
      _ = try await ana.records.updateContainer(
        .init(
          container: .init(name: "containers/notes", limits: .init(maxDatabaseBytes: 2_000)),
          updateMask: .init(paths: ["limits"])), ana.options)
      await expect(.resourceExhausted, "QUOTA_EXCEEDED", "record.vencejo") {
        _ = try await ana.save("\(zone.name)/records/b", note(1_000))
      }
      // Less is always possible, and makes room.
      _ = try await ana.modify(
        notes, [.init(operation: .delete(.init(name: "\(zone.name)/records/a")))])
      _ = try await ana.save("\(zone.name)/records/b", note(1_500))
    }
  }
}
