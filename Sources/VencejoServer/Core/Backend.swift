import Synchronization
public import VencejoHTTPClient
public import VencejoRPC
public import VencejoStore

/// A backend on one data folder: its services, to be mounted on any server, in a program or in
/// a test.
public final class Backend: Sendable {
  /// What an operator may choose.
  public struct Configuration: Sendable {
    /// The data folder; made when it is missing.
    public var directory: String
    /// Lets callers from other machines make accounts.
    public var isSignUpOpen = false
    /// Callers on loopback and Unix sockets stand for the operator: they may sign up, and the
    /// first of them becomes administrator. Switch it off behind a reverse proxy, where everybody
    /// comes from there.
    public var trustsLoopback = true
    /// Calls of one user, whatever they are.
    public var callLimit = RateLimit(burst: 20_000, perSecond: 2000)
    /// Calls of one user that change something.
    public var changeLimit = RateLimit(burst: 10_000, perSecond: 1000)
    /// The same of one device.
    public var deviceChangeLimit = RateLimit(burst: 5000, perSecond: 500)
    /// Attempts to sign up or in from one address that is not trusted.
    public var attemptLimit = RateLimit(burst: 30, perSecond: 0.5)
    /// Bounds of what a client may ask for between two frames of a stream.
    public var heartbeats: ClosedRange<Duration> = .seconds(5) ... .seconds(60)
    /// What it gets without asking.
    public var heartbeatDefault: Duration = .seconds(20)
    /// Streams end at this age, give or take a tenth, so that clients spread anew.
    public var streamAge: Duration = .seconds(24 * 3600)
    /// A stream whose client takes nothing for so long is ended; until then it reads the log from
    /// where it is, however far it is behind.
    public var streamPatience: Duration = .seconds(60)
    /// How long somebody counts as present after their last stream ended: a reconnect is no
    /// news.
    public var presenceDebounce: Duration = .seconds(5)
    /// Between two rounds in which expired messages leave the disk.
    public var sweepInterval: Duration = .seconds(10)
    /// Machines that hooks may reach, beside the public Internet.
    public var hookPolicy = NetworkPolicy()
    public var store = StoreOptions()

    public init(directory: String) { self.directory = directory }
  }

  /// Everything is remembered here; operations of the program itself go through it.
  public let store: Store
  let configuration: Configuration
  let authenticator: Authenticator
  let streams: StreamRegistry
  private let chatHub: ChatHub
  private let recordHub: RecordHub
  private let presence: PresenceBoard
  /// Posts for whichever service lets something wait.
  let hooks: HookSender
  private let follower: PushFollower
  private let limits: RateLimits
  private let guardian = SignInGuard()
  private let door: SignUpDoor
  private let housekeeping: [Task<Void, Never>]

  /// Opens the data folder. Blocks for as long as that takes.
  ///
  /// - Throws: ``StoreError`` as ``Store/open(directory:options:)`` does.
  public init(configuration: Configuration) throws(StoreError) {
    var configuration = configuration
    try TestSettings.apply(to: &configuration)
    let store = try Store.open(directory: configuration.directory, options: configuration.store)
    let limits = RateLimits(configuration.limits)
    door = SignUpDoor(isOpen: configuration.isSignUpOpen)
    let authenticator = Authenticator(store, limits)
    let streams = StreamRegistry()
    let chatHub = ChatHub(store)
    let recordHub = RecordHub()
    self.store = store
    self.configuration = configuration
    self.authenticator = authenticator
    self.limits = limits
    self.streams = streams
    self.chatHub = chatHub
    self.recordHub = recordHub
    let presence = PresenceBoard(store, chatHub, debounce: configuration.presenceDebounce)
    self.presence = presence
    let push = PushRenderer(store: store)
    hooks = try HookSender(
      store, policy: configuration.hookPolicy,
      renderers: [
        .notification: push, .passwordReset: push, .report: push,
        .firing: FiringRenderer(store: store),
      ])
    let follower = PushFollower(store, presence)
    self.follower = follower
    let sweepInterval = configuration.sweepInterval
    // Whether words went from messages since the index was put in order.
    let wordsWent = Flag()
    housekeeping = [
      Task {
        // What an operator asks for is done within a second.
        while !Task.isCancelled {
          if (try? await store.read { try $0.hasAdminTasks() }) == true {
            while (try? await store.write { try $0.runAdminTask() }) == true {}
          }
          try? await Task.sleep(for: .seconds(1))
        }
      },
      Task {
        // Of an import that ended before the index was made.
        while !Task.isCancelled,
          (try? await store.write { try $0.indexPendingRecords() }) == true
        {}
      },
      Task {
        while !Task.isCancelled {
          while (try? await store.write { try $0.pruneLog() }) == true {}
          while (try? await store.write { try $0.pruneTombstones() }) == true {}
          while (try? await store.write { try $0.pruneFirings() }) == true {}
          while (try? await store.write { try $0.pruneUnshared() }) == true {}
          if wordsWent.lower() {
            var isFirst = true
            while !Task.isCancelled,
              (try? await store.write { [isFirst] in try $0.optimizeSearch(isFirst: isFirst) })
                == true
            {
              isFirst = false
            }
          }
          try? await Task.sleep(for: .seconds(3600))
        }
      },
      Task {
        while !Task.isCancelled {
          while (try? await store.write { try $0.sweepExpired() }) == true {}
          while (try? await store.write { try $0.sweepPins() }) == true {}
          while (try? await store.write { try $0.sweepNotifications() }) == true {}
          while (try? await store.write { try $0.purgeDeletedChats() }) == true {}
          while (try? await store.write { try $0.purgeAccounts() }) == true {}
          try? await store.collectAttachments()
          let keys = authenticator.takeKeysUsed()
          if !keys.isEmpty { _ = try? await store.write { try $0.noteUse(ofKeys: keys) } }
          try? await Task.sleep(for: sweepInterval)
        }
      },
    ]
    store.observe { batch in
      for event in batch.transactions.joined() {
        if event.kind == .messagesDeleted || event.kind == .messageUpdated { wordsWent.raise() }
        guard let revoked = event.payload as? RevokedSessions else { continue }
        authenticator.forget(sessions: revoked.sessions)
        streams.revoke(sessions: revoked.sessions)
      }
      chatHub.publish(batch)
      follower.publish(batch)
      recordHub.publish(batch)
    }
  }

  /// The services, in no special order.
  public var services: [any Service] {
    [
      AuthServer(
        store: store, authenticator: authenticator, door: door,
        trustsLoopback: configuration.trustsLoopback, heartbeat: configuration.heartbeatDefault,
        guardian: guardian, limits: limits),
      ChatServer(
        store: store, authenticator: authenticator, hub: chatHub, presence: presence,
        streams: streams, hooks: hooks, settings: SharedSettings(configuration)),
      RecordServer(
        store: store, authenticator: authenticator, hub: recordHub, streams: streams,
        configuration: configuration),
    ]
  }

  /// Frames of ChatService's commits encoded so far, whoever they were sent to.
  package var encodedChatFrames: Int { chatHub.encodedFrames }

  /// Takes over what may change while the server runs: who may sign up, limits of rates, where
  /// hooks may go.
  public func apply(_ changed: Configuration) {
    door.isOpen = changed.isSignUpOpen
    limits.set(changed.limits)
    hooks.policy = changed.hookPolicy
  }

  /// Ends every stream with `Closing{SERVER_DRAINING}`; new ones end likewise. Unary calls go
  /// on.
  public func drain() { streams.drain() }

  /// Ends the streams, finishes the writes under way and gives the folder back. Blocks; call it
  /// after the server that serves it is shut down.
  public func close() {
    for task in housekeeping { task.cancel() }
    presence.stop()
    follower.close()
    hooks.close()
    streams.drain()
    store.close()
  }
}

extension Backend.Configuration {
  fileprivate var limits: [RateLimits.Act: RateLimit] {
    [
      .call: callLimit, .change: changeLimit, .deviceChange: deviceChangeLimit,
      .attempt: attemptLimit,
    ]
  }
}

/// Whether strangers may make accounts.
final class SignUpDoor: Sendable {
  private let state: Atomic<Bool>

  init(isOpen: Bool) { state = Atomic(isOpen) }

  var isOpen: Bool {
    get { state.load(ordering: .relaxed) }
    set { state.store(newValue, ordering: .relaxed) }
  }
}

/// Something that happened, until somebody looks.
private final class Flag: Sendable {
  private let isUp = Atomic(false)
  func raise() { isUp.store(true, ordering: .relaxed) }
  /// Whether it was up.
  func lower() -> Bool { isUp.exchange(false, ordering: .relaxed) }
}
