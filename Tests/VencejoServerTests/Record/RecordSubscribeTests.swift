import Testing
import VencejoAPI
import VencejoProtobuf
import VencejoRPC
import VencejoServer

/// RecordService.Subscribe through the real client.
@Suite(.timeLimit(.minutes(1))) struct RecordSubscribeTests {
  private let notes = "containers/notes/databases/private"

  private func number(_ value: Int64) -> [String: Record.Value] {
    ["n": .init(kind: .int64Value(value))]
  }

  @Test("Rule 10: a record that leaves a query is told as such")
  func queriesFollowRecordsInAndOut() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let zone = try await ana.makeZone("z", in: notes)
      func name(_ id: String) -> String { "\(zone.name)/records/\(id)" }
      var kept = try await ana.save(name("old"), number(9))
      let call = ana.records.subscribe(
        .with {
          $0.parent = notes
          $0.includeSnapshot = true
          $0.targets = [
            .init(
              targetId: 7,
              target: .query(.init(recordType: "Note", criteria: .filter("n > 3")))),
            .init(targetId: 8, target: .zone(zone.name)),
          ]
        }, ana.options)
      var frames = call.makeAsyncIterator()
      // The snapshot, a frame for each target.
      for target in [7, 8] as [Int32] {
        let frame = try #require(try await frames.next())
        #expect(frame.historical)
        #expect(frame.targetIds == [target])
        #expect(frame.matched == kept)
      }
      let caughtUp = try #require(try await frames.next())
      #expect(caughtUp.event == .caughtUp(.init(replayedEventCount: 0)))
      #expect(!caughtUp.resumeToken.isEmpty)

      // It leaves the query and stays in the zone.
      kept = try await ana.save(name("old"), number(1), tag: kept.changeTag)
      let stays = try #require(try await frames.next())
      #expect(stays.targetIds == [8])
      #expect(stays.matched == kept)
      #expect(stays.resumeToken.isEmpty)
      let leaves = try #require(try await frames.next())
      #expect(leaves.targetIds == [7])
      #expect(leaves.event == .recordUnmatched(.init(name: kept.name)))
      #expect(!leaves.resumeToken.isEmpty)

      // A new one that matches both, with the request that made it.
      _ = try await ana.records.modifyRecords(
        .init(
          parent: notes, operations: [.save(name("new"), number(5))], requestId: "mine"),
        ana.options)
      let new = try #require(try await frames.next())
      #expect(new.targetIds == [7, 8])
      guard case .recordMatched(let event)? = new.event else {
        Issue.record("\(new)")
        return
      }
      #expect(event.reason == .creation)
      #expect(event.requestId == "mine")
      #expect(new.commitTime != nil)

      // Deleted; the query never had it.
      _ = try await ana.modify(notes, [.init(operation: .delete(.init(name: kept.name)))])
      let gone = try #require(try await frames.next())
      #expect(gone.targetIds == [8])
      guard case .recordDeleted(let deleted)? = gone.event else {
        Issue.record("\(gone)")
        return
      }
      #expect(deleted.record?.name == kept.name)

      _ = try await ana.records.deleteZone(.init(name: zone.name), ana.options)
      let zoneGone = try #require(try await frames.next())
      #expect(
        zoneGone.event == .zoneDeleted(.init(zone: .init(name: zone.name, reason: .deleted))))
      call.cancel()
    }
  }

  @Test func resumesWithoutAGap() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let zone = try await ana.makeZone("z", in: notes)
      func subscribe(_ token: String, _ target: String? = nil)
        -> ServerStreamingCall<Record.SubscribeResponse>
      {
        ana.records.subscribe(
          .with {
            $0.parent = notes
            $0.resumeToken = token
            $0.targets = [.init(targetId: 1, target: .zone(target ?? zone.name))]
          }, ana.options)
      }
      _ = try await ana.save("\(zone.name)/records/before", [:])
      let token = try await ana.query(zone.name, "Note").resumeToken
      for index in 0..<300 {
        _ = try await ana.save("\(zone.name)/records/r\(index)", number(Int64(index)))
      }
      let call = subscribe(token)
      var names: [String] = []
      var last = ""
      for try await frame in call {
        if let record = frame.matched {
          #expect(frame.historical)
          names.append(record.name)
        }
        if !frame.resumeToken.isEmpty { last = frame.resumeToken }
        if case .caughtUp(let event)? = frame.event {
          #expect(event.replayedEventCount == 300)
          break
        }
      }
      call.cancel()
      #expect(names == (0..<300).map { "\(zone.name)/records/r\($0)" })
      // From the last token there is nothing.
      let again = subscribe(last)
      var frames = again.makeAsyncIterator()
      #expect(try await frames.next()?.event == .caughtUp(.init()))
      again.cancel()
      // It is of these targets only; one that is no token at all starts afresh.
      let other = try await ana.makeZone("other", in: notes)
      await expect(.invalidArgument, "TOKEN_MISMATCH", "record.vencejo") {
        for try await _ in subscribe(last, other.name) {}
      }
      let reset = subscribe("nonsense")
      frames = reset.makeAsyncIterator()
      #expect(try await frames.next()?.event == .reset(.init(reason: .tokenUnknown)))
      #expect(try await frames.next()?.matched != nil)
      reset.cancel()
    }
  }

  @Test func heartbeatsCarryATokenAndDrainsSayGoodbye() async throws {
    try await withWorld({
      $0.heartbeats = .milliseconds(20) ... .seconds(60)
      $0.heartbeatDefault = .milliseconds(20)
    }) { world in
      let ana = try await world.person("ana")
      let zone = try await ana.makeZone("z", in: notes)
      let call = ana.records.subscribe(
        .with {
          $0.parent = notes
          $0.targets = [.init(targetId: 1, target: .zone(zone.name))]
        }, ana.options)
      var beats = 0
      var closing: Record.CloseReason?
      for try await frame in call {
        switch frame.event {
        case .heartbeat(let beat)?:
          #expect(!frame.resumeToken.isEmpty)
          #expect(beat.serverTime != nil)
          beats += 1
          if beats == 2 { world.backend.drain() }
        case .closing(let event)?: closing = event.reason
        default: break
        }
      }
      #expect(beats >= 2)
      #expect(closing == .serverDraining)
    }
  }

  @Test func aStreamEndsWithItsSession() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let zone = try await ana.makeZone("z", in: notes)
      let call = ana.records.subscribe(
        .with {
          $0.parent = notes
          $0.targets = [.init(targetId: 1, target: .zone(zone.name))]
        }, ana.options)
      var closing: Record.CloseReason?
      await expect(.unauthenticated, "SESSION_REVOKED", "record.vencejo") {
        for try await frame in call {
          if case .caughtUp? = frame.event {
            _ = try await ana.auth.signOut(.init(), ana.options)
          }
          if case .closing(let event)? = frame.event { closing = event.reason }
        }
      }
      #expect(closing == .sessionRevoked)
    }
  }

  @Test func unknownZonesAndTargetsAreRefused() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      _ = try await ana.makeZone("z", in: notes)
      func subscribe(_ targets: [Record.SubscribeTarget]) async throws {
        let call = ana.records.subscribe(
          .with {
            $0.parent = notes
            $0.targets = targets
          }, ana.options)
        for try await _ in call {}
      }
      await expect(.notFound, "ZONE_NOT_FOUND", "record.vencejo") {
        try await subscribe([.init(targetId: 1, target: .zone("\(notes)/zones/none"))])
      }
      // Beside one that exists, only the target fails.
      let call = ana.records.subscribe(
        .with {
          $0.parent = notes
          $0.targets = [
            .init(targetId: 1, target: .zone("\(notes)/zones/none")),
            .init(targetId: 2, target: .zone("\(notes)/zones/z")),
          ]
        }, ana.options)
      var frames = call.makeAsyncIterator()
      guard case .targetFailed(let failed)? = try await frames.next()?.event else {
        Issue.record("no TargetFailed")
        return
      }
      #expect(failed.targetId == 1)
      #expect(failed.status?.code == 5)
      #expect(try await frames.next()?.event == .caughtUp(.init()))
      call.cancel()
      let zone = Record.SubscribeTarget(targetId: 1, target: .zone("\(notes)/zones/z"))
      for targets in [[], [.init(targetId: 1)], [zone, zone]] as [[Record.SubscribeTarget]] {
        await expect(.invalidArgument, "INVALID_REQUEST", "record.vencejo") {
          try await subscribe(targets)
        }
      }
      await expect(.invalidArgument, "LIMIT_EXCEEDED", "record.vencejo") {
        try await subscribe(
          (0..<65).map { .init(targetId: $0, target: .zone("\(notes)/zones/z")) })
      }
    }
  }
}

extension Record.SubscribeResponse {
  var matched: Record.Record? {
    if case .recordMatched(let event)? = event { event.record } else { nil }
  }
}
