import Synchronization
import VencejoCrypto
import VencejoHTTPClient
import VencejoStore

/// Posts what waits for hooks: the events of one hook one after the other, those of several side
/// by side, each again with growing delays until it is taken.
///
/// What waits is in the store; here is only what is on its way. A service lets something wait with
/// `WriteTransaction.enqueue` and has a ``HookRenderer`` for its kind.
final class HookSender: Sendable {
  private static let limit = 32
  private static let timeout: Duration = .seconds(10)

  private struct State {
    var policy: NetworkPolicy
    var busy: Set<Int64> = []
    var timer: Task<Void, Never>?
  }

  private let store: Store
  private let client: HTTPClient
  private let renderers: [HookKind: any HookRenderer]
  private let state: Mutex<State>
  private let signals: AsyncStream<Void>.Continuation
  private let loop: Mutex<Task<Void, Never>?>

  /// - Throws: `NO_THREAD`.
  init(_ store: Store, policy: NetworkPolicy, renderers: [HookKind: any HookRenderer])
    throws(StoreError)
  {
    guard let client = HTTPClient(limit: Self.limit) else {
      throw StoreError(.internalError, "NO_THREAD", "no thread for hooks")
    }
    self.store = store
    self.client = client
    self.renderers = renderers
    state = Mutex(State(policy: policy))
    let (stream, continuation) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    signals = continuation
    loop = Mutex(nil)
    store.observeHooks { [signals] in signals.yield() }
    let task = Task { [weak self] in
      for await _ in stream { await self?.pump() }
    }
    loop.withLock { $0 = task }
    // What waited when the server went down.
    signals.yield()
  }

  /// Where posts may go from now on.
  var policy: NetworkPolicy {
    get { state.withLock { $0.policy } }
    set { state.withLock { $0.policy = newValue } }
  }

  /// Looks at what waits; any thread.
  func wake() { signals.yield() }

  /// Ends what is on its way: it is sent again by the next server. Blocks.
  func close() {
    signals.finish()
    loop.withLock { $0?.cancel() }
    state.withLock { $0.timer?.cancel() }
    client.close()
  }

  private func pump() async {
    let busy = state.withLock { $0.busy }
    guard busy.count < Self.limit else { return }
    let found = try? await store.read { transaction in
      (
        try transaction.dueDeliveries(limit: Self.limit - busy.count, busy: busy),
        try transaction.nextDelivery(), transaction.now
      )
    }
    guard let (due, next, now) = found else { return again(after: .seconds(5)) }
    for delivery in due {
      guard state.withLock({ $0.busy.insert(delivery.hook.key).inserted }) else { continue }
      Task { [weak self] in await self?.send(delivery) }
    }
    if let next, next > now { again(after: .microseconds(min(next - now, 60_000_000))) }
  }

  private func again(after delay: Duration) {
    let signals = signals
    state.withLock { state in
      state.timer?.cancel()
      state.timer = Task {
        try? await Task.sleep(for: delay)
        if !Task.isCancelled { signals.yield() }
      }
    }
  }

  private func send(_ delivery: HookDelivery) async {
    let outcome = await attempt(delivery)
    do throws(StoreError) {
      try await store.write { try $0.finish(delivery, outcome) }
      state.withLock { _ = $0.busy.remove(delivery.hook.key) }
      signals.yield()
    } catch {
      // Not noted, as when the disk is full: it will be sent twice, but not at once.
      state.withLock { _ = $0.busy.remove(delivery.hook.key) }
      again(after: .seconds(5))
    }
  }

  private func attempt(_ delivery: HookDelivery) async -> HookOutcome {
    let payload: HookPayload?
    do {
      guard let renderer = renderers[delivery.kind] else { return .done }
      payload = try await renderer.payload(of: delivery)
    } catch {
      return .failed("the event cannot be read")
    }
    guard let payload else { return .done }
    let policy = policy
    guard let address = try? HookRules.check(delivery.hook.uri, policy) else {
      return .failed("ADDRESS_NOT_ALLOWED: the server does not post to such addresses")
    }
    let headers =
      [("content-type", payload.contentType), ("user-agent", "vencejo")]
      + HookSignature.headers(
        id: delivery.id.description, seconds: store.now / 1_000_000, body: payload.body,
        secret: delivery.hook.secret)
    let answer = await client.post(
      HTTPPost(
        address, headers: headers, body: payload.body, timeout: Self.timeout, policy: policy))
    switch answer {
    case .status(200..<300): return .done
    case .status(410): return .gone("GONE: the receiver wants no more")
    case .status(let code) where [400, 413, 415, 422].contains(code):
      return .refused("REFUSED: answered with \(code)")
    case .status(let code): return .failed("answered with \(code)")
    case .forbidden:
      return .failed("ADDRESS_NOT_ALLOWED: the server does not post to such addresses")
    case .failed(let why): return .failed(why)
    }
  }
}
