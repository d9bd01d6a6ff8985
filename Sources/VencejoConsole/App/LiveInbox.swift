/// Live events that nobody has shown yet, for `wait` in scripts. Bounded: the oldest go first.
actor LiveInbox {
  /// One event: how it is shown, and as JSON.
  struct Event: Sendable {
    var lines: [StyledText]
    var json: String
  }

  private var events: [Event] = []
  private var waiter: (id: Int, continuation: CheckedContinuation<Event?, Never>)?
  private var lastID = 0
  private static let limit = 10_000

  func add(_ event: Event) {
    if let waiting = waiter {
      waiter = nil
      waiting.continuation.resume(returning: event)
      return
    }
    events.append(event)
    if events.count > Self.limit { events.removeFirst(events.count - Self.limit) }
  }

  /// The next event; nil at the deadline or when the task is cancelled. For one reader.
  func next(deadline: ContinuousClock.Instant?) async -> Event? {
    if !events.isEmpty { return events.removeFirst() }
    if Task.isCancelled { return nil }
    lastID += 1
    let id = lastID
    let timer = deadline.map { deadline in
      Task {
        try? await Task.sleep(until: deadline, clock: .continuous)
        self.expire(id)
      }
    }
    defer { timer?.cancel() }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { waiter = (id, $0) }
    } onCancel: {
      Task { await self.expire(id) }
    }
  }

  private func expire(_ id: Int) {
    guard let waiting = waiter, waiting.id == id else { return }
    waiter = nil
    waiting.continuation.resume(returning: nil)
  }
}
