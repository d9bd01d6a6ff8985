import Glibc
import VencejoAPI
import VencejoClient
import VencejoProtobuf
import VencejoRPC
import VencejoTools

/// Does what commands ask for, and shows what happens meanwhile. One command at a time.
actor CommandRunner {
  /// Where commands come from.
  enum Mode: Sendable, Hashable {
    /// A person types: live events are shown as they come.
    case interactive
    /// A script runs: they are shown when it waits for them.
    case script
  }

  let client: VencejoClient
  let display: any Display
  let mode: Mode
  let json: Bool
  let profile: Profile
  let inbox = LiveInbox()

  var place: Profile.Place
  /// The chat that is open.
  var open: Chat.Chat?
  var conversation = ConversationView()
  /// The order of the last list, for chats named by number.
  var listed: [Chat.Chat] = []
  var connection = ConnectionState.connecting
  /// Ids of messages this console sent: their echo is not shown again.
  var ownMessages: Set<String> = []
  /// Messages the server was slow to store, with their text.
  var late: [String: String] = [:]
  var sendWaiters: [String: CheckedContinuation<Bool, Never>] = [:]
  var watches: [Task<Void, Never>] = []
  /// Sequences displayed and not yet told to the server, by chat.
  var displayed: [String: Int64] = [:]
  /// A `wait` of a person runs: events are shown as always, and counted.
  var isCounting = false
  var reading: Task<Void, Never>?
  /// Change tokens by zone, for `changes`.
  var changeTokens: [String: String] = [:]
  /// Names seen, for Tab.
  var completer = Completer()
  private var listening: Task<Void, Never>?
  private(set) var isCaughtUp = false
  private var caughtUpWaiters: [Int: CheckedContinuation<Void, Never>] = [:]
  private var lastWaiter = 0
  private var hasQuit = false

  init(
    client: VencejoClient, display: any Display, mode: Mode, json: Bool, profile: Profile
  ) {
    self.client = client
    self.display = display
    self.mode = mode
    self.json = json
    self.profile = profile
    place = profile.place
  }

  var isFinished: Bool { hasQuit }
  var chatIsOpen: Bool { open != nil }

  /// Reads a line and does it. Answers the exit status; the error, if any, has been shown.
  func execute(_ line: String) async -> Int32 {
    do {
      guard let command = try CommandTable.parse(line, chatIsOpen: chatIsOpen) else { return 0 }
      try await run(command)
      if Task.isCancelled { return ExitCode.interrupted }
      return ExitCode.ok
    } catch {
      let report = report(error, line)
      if Task.isCancelled { return ExitCode.interrupted }
      await display.complain(report.lines(width: await display.width))
      return report.exitCode
    }
  }

  private func report(_ error: any Error, _ line: String) -> ErrorReport {
    switch error {
    case let error as GrammarError: ErrorReport(error, line: line)
    case let error as RPCError: Failure(error, line: line).report
    case let error as Failure: error.report
    default: Failure("\(error)").report
    }
  }

  private func run(_ command: Command) async throws {
    switch command {
    case .help(let topic): try await help(topic)
    case .quit: hasQuit = true
    case .server: try await server()
    case .signUp(let handle, let password, let displayName, let email):
      try await signUp(handle, password, displayName, email)
    case .signIn(let handle, let password): try await signIn(handle, password)
    case .signOut(let everywhere): try await signOut(everywhere)
    case .whoAmI: try await whoAmI()
    default:
      try await becomeLive()
      try await runSignedIn(command)
    }
  }

  private func runSignedIn(_ command: Command) async throws {
    switch command {
    case .chats: try await chats(onlyUnread: false)
    case .unread: try await chats(onlyUnread: true)
    case .newChat(let handles, let title): try await newChat(handles, title)
    case .open(let chat): try await open(chat)
    case .back: close()
    case .send(let text): try await send(text)
    case .say(let chat, let text): try await say(chat, text)
    case .messages(let chat, let count): try await messages(chat, count)
    case .read(let chat): try await read(chat)
    case .findUsers(let text): try await findUsers(text)
    case .use(let place): try await use(place)
    case .zones: try await zones()
    case .newZone(let name): try await newZone(name)
    case .deleteZone(let name): try await deleteZone(name)
    case .put(let put): try await self.put(put)
    case .get(let name): try await get(name)
    case .delete(let name): try await delete(name)
    case .query(let query): try await self.query(query)
    case .explain(let query): try await explain(query)
    case .changes(let all): try await changes(all: all)
    case .watch(let target, let limit): try await watch(target, limit)
    case .unwatch: await unwatch()
    case .wait(let limit): try await wait(limit)
    case .outbox: await outbox()
    case .retry(let number): try await retry(number)
    case .discard(let number): try await discard(number)
    default: break
    }
  }

  // MARK: Output

  /// Shows a result: the message as JSON, or its lines.
  func show(_ message: some Message, _ lines: @autoclosure () -> [StyledText]) async {
    if json {
      await display.json(JSONLine.text(message))
    } else {
      await display.show(lines())
    }
  }

  /// Something a person may want to know and a script need not.
  func note(_ text: String) async {
    if mode == .interactive { await display.show([StyledText(text, .faint)]) }
  }

  private func help(_ topic: String?) async throws {
    guard let topic else { return await display.show(Help.overview()) }
    guard let lines = Help.details(topic, width: await display.width ?? 100) else {
      let near = Suggestion.nearest(to: topic, among: CommandTable.names)
      throw Failure(
        "no such command: \(topic)", hint: near.map { "did you mean \($0)?" } ?? "see: help",
        exitCode: ExitCode.usage)
    }
    await display.show(lines)
  }

  // MARK: Live

  /// Opens the stream of changes, once somebody is signed in, and waits until it has caught up:
  /// then every later event is live. A server that cannot be reached is no reason to wait.
  func becomeLive() async throws {
    guard await client.session != nil else {
      throw Failure(
        "nobody is signed in", hint: "sign-in HANDLE, or sign-up HANDLE",
        exitCode: ExitCode.status(.unauthenticated))
    }
    if listening == nil {
      let changes = client.changes()
      listening = Task { [weak self] in
        for await change in changes { await self?.handle(change) }
      }
    }
    client.startSync()
    if mode == .script { await waitUntilCaughtUp() }
  }

  private func waitUntilCaughtUp() async {
    if isCaughtUp || connection.isDown { return }
    lastWaiter += 1
    let id = lastWaiter
    let timer = Task { [weak self] in
      try? await Task.sleep(for: .seconds(5))
      await self?.endWait(id)
    }
    defer { timer.cancel() }
    await withTaskCancellationHandler {
      await withCheckedContinuation { caughtUpWaiters[id] = $0 }
    } onCancel: {
      Task { await self.endWait(id) }
    }
  }

  private func endWait(_ id: Int) {
    caughtUpWaiters.removeValue(forKey: id)?.resume()
  }

  private func endWaits() {
    for waiter in caughtUpWaiters.values { waiter.resume() }
    caughtUpWaiters.removeAll()
  }

  /// Nothing of the last user stays.
  func forgetUser() async {
    await unwatch()
    close()
    listed = []
    ownMessages = []
    late = [:]
    changeTokens = [:]
    isCaughtUp = false
    connection = .connecting
    completer.chats = []
    completer.handles = []
  }

  /// Ends all that runs.
  func shutDown() async {
    for task in watches { task.cancel() }
    watches = []
    listening?.cancel()
    listening = nil
    endWaits()
    client.close()
  }

  func note(_ state: ConnectionState) async {
    let before = connection
    connection = state
    switch state {
    case .live:
      isCaughtUp = true
      endWaits()
      if before.isDown { await note("— connected again —") }
    case .waiting(_, let reason):
      endWaits()
      if !before.isDown { await note("— connection lost: \(reason); trying again —") }
    case .ended(let reason):
      endWaits()
      await note("— live updates ended: \(reason) —")
    case .signedOut:
      endWaits()
      await note("— your session is over; sign in again: sign-in HANDLE —")
    case .connecting, .offline, .catchingUp: if before.isDown { connection = before }
    }
    await promptChanged()
  }

  func promptChanged() async {
    await (display as? TerminalScreen)?.set(prompt: await prompt())
  }

  /// The open chat or the user, what is unread, and whether the server is there.
  func prompt() async -> StyledText {
    var prompt = StyledText()
    prompt.append(await client.session?.handle ?? "vencejo", .strong)
    if let open {
      prompt.append(" · ", .faint)
      prompt.append(VisibleText.clean(title(of: open)), .other)
    }
    let unread = client.cache.chats.filter { $0.name != open?.name }.reduce(0) {
      $0 + Int($1.unread?.unreadCount ?? 0)
    }
    if unread > 0 { prompt.append(" (\(unread))", .badge) }
    let queued = client.outbox.pending.count
    if connection.isDown {
      prompt.append(queued > 0 ? " offline, \(queued) queued" : " offline", .error)
    }
    let failed = client.outbox.failed.count
    if failed > 0 { prompt.append(" \(failed) not sent", .error) }
    prompt.append("> ")
    return prompt
  }
}

extension ConnectionState {
  var isDown: Bool {
    switch self {
    case .offline, .connecting, .catchingUp, .live: false
    case .waiting, .signedOut, .ended: true
    }
  }
}
