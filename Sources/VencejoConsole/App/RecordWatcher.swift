import VencejoAPI
import VencejoClient
import VencejoProtobuf
import VencejoRPC
import VencejoTools

/// Reads one watch of records and hands its changes on as events.
actor RecordWatcher {
  enum Outcome: Sendable {
    case reachedLimit
    /// Events seen until then.
    case cancelled(Int)
    case failed(RPCError)
  }

  private let watch: RecordWatch
  private let translation: RecordTranslation
  private let limit: Int?
  private var isLive = false
  private var failure: RPCError?
  private var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
  private var lastWaiter = 0

  init(watch: RecordWatch, translation: RecordTranslation, limit: Int?) {
    self.watch = watch
    self.translation = translation
    self.limit = limit
  }

  func run(_ deliver: @Sendable (LiveInbox.Event) async -> Void) async -> Outcome {
    var seen = 0
    do throws(RPCError) {
      for try await frames in watch {
        for frame in frames {
          switch frame.event {
          case .caughtUp?: becomeLive()
          case .targetFailed(let failed)?:
            let status = failed.status ?? .init()
            throw RPCError(status)
          default:
            guard !frame.historical, let line = line(frame.event) else { continue }
            await deliver(.init(lines: [line], json: JSONLine.text(frame)))
            seen += 1
            if seen == limit { return .reachedLimit }
          }
        }
      }
      return .cancelled(seen)
    } catch {
      defer { endWaits() }
      if Task.isCancelled { return .cancelled(seen) }
      failure = error
      return .failed(error)
    }
  }

  private func line(_ event: Record.SubscribeResponse.Event?) -> StyledText? {
    switch event {
    case .recordMatched(let matched)?:
      guard let record = matched.record else { return nil }
      let verb = matched.reason == .creation ? "new" : "changed"
      return RecordView.line(verb, translation.row(record))
    case .recordUnmatched(let unmatched)?:
      return RecordView.line(
        "matches no more",
        .init(name: translation.shortName(unmatched.name), type: "", fields: [:]))
    case .recordDeleted(let deleted)?:
      guard let record = deleted.record else { return nil }
      return RecordView.line(
        "deleted",
        .init(name: translation.shortName(record.name), type: record.recordType, fields: [:]))
    case .zoneDeleted(let deleted)?:
      return StyledText("zone deleted: \(VisibleText.clean(deleted.zone?.name ?? ""))", .badge)
    case .zoneChanged(let changed)?:
      return StyledText("zone changed: \(VisibleText.clean(changed.zone?.name ?? ""))", .badge)
    case .firing(let event)?:
      let firing = event.firing ?? .init()
      return StyledText(
        "fired: \(VisibleText.clean(firing.title)) \(VisibleText.clean(firing.record))", .badge)
    case .reset?: return StyledText("— some changes were missed; query again —", .faint)
    case .caughtUp?, .heartbeat?, .closing?, .targetFailed?, nil: return nil
    }
  }

  /// Returns once every later change is seen; throws why none ever will be.
  func waitUntilLive(within time: Duration) async throws(RPCError) {
    if !isLive, failure == nil {
      lastWaiter += 1
      let id = lastWaiter
      let timer = Task {
        try? await Task.sleep(for: time)
        self.endWait(id)
      }
      defer { timer.cancel() }
      await withTaskCancellationHandler {
        await withCheckedContinuation { waiters[id] = $0 }
      } onCancel: {
        Task { await self.endWait(id) }
      }
    }
    if let failure { throw failure }
    if !isLive {
      throw RPCError(.unavailable, "the server did not begin to send changes in time")
    }
  }

  private func becomeLive() {
    isLive = true
    endWaits()
  }

  private func endWait(_ id: Int) { waiters.removeValue(forKey: id)?.resume() }

  private func endWaits() {
    for waiter in waiters.values { waiter.resume() }
    waiters.removeAll()
  }
}
