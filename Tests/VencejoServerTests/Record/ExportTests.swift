import Testing
import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC
import VencejoServer
import VencejoStore

/// Databases out and in again, through the real client.
@Suite(.timeLimit(.minutes(1))) struct ExportTests {
  private let notes = "containers/notes/databases/private"

  private func export(
    _ parent: String, by person: Person, assets: Bool = true, token: String = ""
  ) async throws -> [Record.ExportRecordsResponse] {
    var frames: [Record.ExportRecordsResponse] = []
    for try await frame in person.records.exportRecords(
      .init(parent: parent, includeAssets: assets, pageToken: token), person.options)
    {
      frames.append(frame)
    }
    return frames
  }

  private func `import`(
    _ frames: [Record.ExportRecordsResponse], to header: Record.ImportHeader, by person: Person
  ) async throws -> Record.ImportRecordsResponse {
    let call = person.records.importRecords(person.options)
    try await call.send(.init(payload: .header(header)))
    for frame in frames {
      switch frame.payload {
      case .record(let record)?: try await call.send(.init(payload: .record(record)))
      case .assetPart(let part)?: try await call.send(.init(payload: .assetPart(part)))
      default: break
      }
    }
    call.finish()
    return try await call.response
  }

  private func upload(_ bytes: [UInt8], by person: Person) async throws -> Record.Value {
    let call = person.records.uploadAsset(person.options)
    try await call.send(
      .init(
        payload: .header(
          .init(
            uploadId: "\(UUID.v7())", fileName: "a.bin", contentType: "image/png",
            sizeBytes: Int64(bytes.count), sha256: SHA256.digest(bytes)))))
    for start in stride(from: 0, to: bytes.count, by: 1 << 20) {
      let end = min(bytes.count, start + (1 << 20))
      try await call.send(.init(payload: .chunk(Array(bytes[start..<end]))))
    }
    call.finish()
    return .init(kind: .assetValue(.init(assetId: try await call.response.asset?.assetId ?? "")))
  }

  /// Records by zone and name, without what differs between two databases.
  private func image(_ frames: [Record.ExportRecordsResponse]) -> [String: String] {
    var records: [String: String] = [:]
    for case .record(var record)? in frames.map(\.payload) {
      func local(_ name: String) -> String {
        name.split(separator: "/").dropFirst(4).joined(separator: "/")
      }
      func local(_ value: Record.Value) -> Record.Value {
        switch value.kind {
        case .referenceValue(var reference)?:
          reference.record = local(reference.record)
          return .init(kind: .referenceValue(reference))
        case .assetValue(var asset)?:
          asset.assetId = ""
          return .init(kind: .assetValue(asset))
        case .listValue(let list)?:
          return .init(kind: .listValue(.init(values: list.values.map { local($0) })))
        default: return value
        }
      }
      let name = local(record.name)
      record.name = ""
      record.changeTag = ""
      record.parent = record.parent.map { .init(record: local($0.record)) }
      record.fields = record.fields.mapValues { local($0) }
      let fields = record.fields.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
      record.fields = [:]
      records[name] = "\(record) \(fields)"
    }
    return records
  }

  @Test func whatGoesOutComesInAgain() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let ben = try await world.person("ben")
      let zone = try await ana.makeZone("z", in: notes)
      let other = try await ana.makeZone("other", in: notes)
      func name(_ id: String) -> String { "\(zone.name)/records/\(id)" }
      let large = [UInt8](repeating: 7, count: 1_500_000)
      let file = try await upload(large, by: ana)
      let small = try await upload([1], by: ana)
      // Saved before what it is bound to changes last: it comes first, and its target after it.
      _ = try await ana.save(name("target"), ["n": .init(kind: .int64Value(1))])
      _ = try await ana.save(
        name("a"),
        [
          "s": .init(kind: .stringValue("line\n\u{0}\"é\u{1F600}")),
          "i": .init(kind: .int64Value(.max)), "d": .init(kind: .doubleValue(-.infinity)),
          "b": .init(kind: .bytesValue([0, 255])),
          "t": .init(kind: .timestampValue(.init(seconds: -1, nanos: 999_999_000))),
          "p": .init(
            kind: .locationValue(
              .init(
                latitudeDegrees: -90, longitudeDegrees: 180, altitudeMeters: 0,
                speedMetersPerSecond: 2.5, sampleTime: .init(seconds: 5)))),
          "r": .init(
            kind: .referenceValue(.init(record: name("target"), action: .deleteSelf))),
          "l": .init(
            kind: .listValue(
              .init(values: [
                .init(kind: .referenceValue(.init(record: name("gone")))),
                .init(kind: .referenceValue(.init(record: name("target")))),
              ]))),
          "e": .init(kind: .listValue(.init())), "f": file,
          "files": .init(kind: .listValue(.init(values: [small, file]))),
        ])
      _ = try await ana.modify(
        notes,
        [
          .init(
            operation: .save(
              .init(
                record: .init(
                  name: name("child"), recordType: "Note",
                  parent: .init(record: name("target"))), savePolicy: .replace))),
          .save(name("target"), ["n": .init(kind: .int64Value(2))], policy: .allKeys),
          .save("\(other.name)/records/a", ["n": .init(kind: .int64Value(3))]),
          .save(
            "\(notes)/zones/_defaultZone/records/d", ["n": .init(kind: .int64Value(4))]),
        ])
      let out = try await export(notes, by: ana)
      guard case .progress(let end)? = out.last?.payload else {
        Issue.record("no progress at the end")
        return
      }
      #expect(end.done && end.exportedCount == 5 && end.pageToken.isEmpty)
      // Of ana's, whom the first look makes nothing of.
      var header = Record.ImportHeader(parent: notes)
      header.validateOnly = true
      let look = try await `import`(out, to: header, by: ben)
      #expect(look.importedCount == 5 && look.failedCount == 0, "\(look)")
      #expect(try await export(notes, by: ben).count == 1)
      header.validateOnly = false
      let done = try await `import`(out, to: header, by: ben)
      #expect(done.importedCount == 5 && done.failedCount == 0, "\(done)")
      let back = try await export(notes, by: ben)
      var expected = image(out)
      var found = image(back)
      // They are ben's, and new; all else is equal.
      for (name, text) in found { found[name] = String(text.drop { $0 != "[" }) }
      for (name, text) in expected { expected[name] = String(text.drop { $0 != "[" }) }
      #expect(found == expected)
      func files(_ frames: [Record.ExportRecordsResponse]) -> Set<[UInt8]> {
        var contents: [[UInt8]] = []
        for case .assetPart(let part)? in frames.map(\.payload) {
          if part.asset != nil { contents.append([]) }
          contents[contents.count - 1] += part.data
        }
        return Set(contents)
      }
      #expect(files(out) == [large, [1]] && files(back) == files(out))
      // Again: nothing to do.
      let again = try await `import`(out, to: header, by: ben)
      #expect(again.importedCount == 0 && again.unchangedCount == 5, "\(again)")
      // The administrator keeps who made them, and when.
      header.parent = "containers/copy/databases/private"
      header.preserveSystemFields = true
      #expect(try await `import`(out, to: header, by: ana).importedCount == 5)
      #expect(image(try await export(header.parent, by: ana)) == image(out))
      await expect(.permissionDenied, "NOT_AN_ADMINISTRATOR", "record.vencejo") {
        _ = try await `import`(out, to: header, by: ben)
      }
      // Another's database is neither read nor written.
      let anas = zone.name.split(separator: "/").prefix(4).joined(separator: "/")
      await expect(.permissionDenied, "NOT_YOUR_DATABASE", "record.vencejo") {
        _ = try await export(anas, by: ben)
      }
      await expect(.permissionDenied, "NOT_YOUR_DATABASE", "record.vencejo") {
        _ = try await `import`(out, to: .init(parent: anas), by: ben)
      }
    }
  }

  @Test func whatIsRefusedIsToldByItsName() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let zone = try await ana.makeZone("z", in: notes)
      func frame(_ name: String, _ fields: [String: Record.Value]) -> Record.ExportRecordsResponse {
        .init(payload: .record(.init(name: name, recordType: "Note", fields: fields)))
      }
      let one = Record.Value(kind: .int64Value(1))
      let lost = "\(zone.name)/records/lost"
      let response = try await `import`(
        [
          frame("\(zone.name)/records/a", ["n": one]), frame("nothing", [:]),
          frame("\(zone.name)/records/b", ["n": .init(kind: .stringValue("x"))]),
          frame(
            "\(zone.name)/records/c",
            ["r": .init(kind: .referenceValue(.init(record: lost, action: .deleteSelf)))]),
        ], to: .init(parent: zone.name), by: ana)
      #expect(response.importedCount == 1 && response.failedCount == 3)
      #expect(
        Set(response.failures.map { $0.record.split(separator: "/").last }) == [
          "nothing", "b", "c",
        ])
      let call = ana.records.importRecords(ana.options)
      try await call.send(.init(payload: .record(.init(name: lost))))
      call.finish()
      await expect(.invalidArgument, "BAD_IMPORT", "record.vencejo") { _ = try await call.response }
    }
  }
}
