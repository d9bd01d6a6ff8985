import Testing
import VencejoAPI
import VencejoProtobuf
import VencejoRPC

/// Containers and schemas through the real client.
@Suite(.timeLimit(.minutes(1))) struct ContainerTests {
  @Test func aSchemaGoesFromDevelopmentToProduction() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let ben = try await world.person("ben")
      let made = try await ana.records.createContainer(
        .init(
          containerId: "app", container: .init(displayName: "App", administrators: [ben.name])),
        ana.options)
      let container = try #require(made.container)
      #expect(container.name == "containers/app" && container.environment == .development)
      #expect(container.limits?.maxOperationsPerRequest == 400)
      let notes = "containers/app/databases/private"
      let zone = try await ana.makeZone("z", in: notes)
      _ = try await ana.save("\(zone.name)/records/a", ["n": .init(kind: .int64Value(1))])
      let learnt = try await ana.records.getSchema(.init(container: container.name), ana.options)
      #expect(
        learnt.schema?.recordTypes.first?.fields == [
          .init(field: "n", type: .int64, queryable: true, sortable: true, inferred: true)
        ])
      #expect(learnt.schemaText.contains("RECORD TYPE Note (\n    n INT64 QUERYABLE SORTABLE"))
      // An administrator of the container, who is none of the server, deploys.
      let planned = try await ben.records.deploySchema(
        .init(container: container.name, validateOnly: true), ben.options)
      #expect(planned.changes.map(\.kind) == [.typeAdded, .fieldAdded])
      _ = try await ben.records.deploySchema(.init(container: container.name), ben.options)
      _ = try await ben.records.updateContainer(
        .init(
          container: .init(name: container.name, environment: .production),
          updateMask: .init(paths: ["environment"])), ben.options)
      let response = try await ana.modify(
        notes, [.save("\(zone.name)/records/b", ["other": .init(kind: .int64Value(1))])])
      #expect(response.results[0].reason == "UNKNOWN_FIELD")
      let text = try await ben.records.updateSchema(
        .init(
          container: container.name,
          source: .schemaText("DEFINE SCHEMA RECORD TYPE Note (n INT64, other INT64)")),
        ben.options)
      #expect(text.changes.map(\.kind) == [.indexChanged, .fieldAdded])
      _ = try await ben.records.deploySchema(.init(container: container.name), ben.options)
      _ = try await ana.save("\(zone.name)/records/b", ["other": .init(kind: .int64Value(1))])
      let cat = try await world.person("cat")
      await expect(.permissionDenied, "NOT_AN_ADMINISTRATOR", "record.vencejo") {
        _ = try await cat.records.deploySchema(.init(container: container.name), cat.options)
      }
      let listed = try await cat.records.listContainers(.init(), cat.options)
      #expect(listed.containers.map(\.name) == ["containers/app"])
      await expect(.failedPrecondition, "CONTAINER_NOT_EMPTY", "record.vencejo") {
        _ = try await ana.records.deleteContainer(.init(name: container.name), ana.options)
      }
      _ = try await ana.records.deleteContainer(
        .init(name: container.name, force: true), ana.options)
      await expect(.notFound, "CONTAINER_NOT_FOUND", "record.vencejo") {
        _ = try await ana.records.getContainer(.init(name: container.name), ana.options)
      }
    }
  }

  /// A live stream of a public database starts afresh when rights change, and tells no more than
  /// they allow.
  @Test func streamsFollowTheRights() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let ben = try await world.person("ben")
      let place = "containers/app/databases/public"
      _ = try await ana.save(
        "\(place)/zones/_defaultZone/records/a", ["n": .init(kind: .int64Value(1))])
      let call = ben.records.subscribe(
        .init(
          parent: place, targets: [.init(targetId: 1, target: .query(.init(recordType: "Note")))],
          includeSnapshot: true), ben.options)
      var frames = call.makeAsyncIterator()
      func next() async throws -> String {
        switch try await frames.next()?.event {
        case .recordMatched(let matched)?: "matched \(matched.record?.name.suffix(1) ?? "")"
        case .recordUnmatched(let gone)?: "unmatched \(gone.name.suffix(1))"
        case .reset(let reset)?: "reset \(reset.reason)"
        case .caughtUp?: "caught up"
        case let other: "\(String(describing: other))"
        }
      }
      #expect(try await next() == "matched a")
      #expect(try await next() == "caught up")
      _ = try await ana.records.updateSchema(
        .init(
          container: "containers/app",
          source: .schemaText(
            "DEFINE SCHEMA RECORD TYPE Note (n INT64, GRANT CREATE TO _authenticated,"
              + " GRANT READ, WRITE TO _creator)")), ana.options)
      #expect(try await next() == "reset \(Record.ResetReason.accessChanged)")
      _ = try await ana.save(
        "\(place)/zones/_defaultZone/records/b", ["n": .init(kind: .int64Value(1))])
      _ = try await ben.save(
        "\(place)/zones/_defaultZone/records/c", ["n": .init(kind: .int64Value(1))])
      #expect(try await next() == "matched c")
      call.cancel()
    }
  }
}
