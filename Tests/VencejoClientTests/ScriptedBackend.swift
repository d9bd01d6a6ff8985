import Synchronization
import VencejoAPI
import VencejoHTTP2
import VencejoProtobuf
import VencejoRPC

/// A server whose answers a test writes: tokens that it can declare dead, a chat stream that it can
/// cut anywhere.
final class ScriptedBackend: Sendable {
  /// What a stream does next.
  enum Step: Sendable {
    case frame(Chat.SubscribeResponse)
    case fail(RPCError)
    case finish
    /// Sends nothing more until the client goes away.
    case hang
  }

  struct State {
    var goodTokens: Set<String> = []
    var refreshToken = "r0"
    var issued = 0
    var refreshes = 0
    var refusesRefresh = false
    /// Seconds an access token lives.
    var lifetime: Int64 = 900
    /// One script per Subscribe call; a call beyond them hangs.
    var streams: [[Step]] = []
    /// The resume tokens of the Subscribe calls.
    var resumed: [String] = []
    var heartbeats: [Google.Duration?] = []
    var stored: [String: Chat.Message] = [:]
    var order: [String] = []
    /// Errors of the next sends; the message is stored all the same when `storesOnFailure`.
    var sendFailures: [RPCError] = []
    var attempts: [String] = []
    /// Chats that no send reaches.
    var stuckChats: Set<String> = []
  }

  let state = Mutex(State())
  let server: Server
  var address: String { "\(server.addresses[0])" }

  init() throws {
    let box = Box()
    server = try Server(listening: SocketAddress(parsing: "127.0.0.1:0")) {
      ScriptedAuth(box: box)
      ScriptedChat(box: box)
    }
    box.set(self)
  }

  /// Ends the life of every access token.
  func expireTokens() { state.withLock { $0.goodTokens.removeAll() } }

  /// The backend, known to the services only after they were made.
  final class Box: Sendable {
    private let backend = Mutex<Weak>(Weak())
    private struct Weak { weak var value: ScriptedBackend? }
    func set(_ value: ScriptedBackend) { backend.withLock { $0.value = value } }
    func get() throws(RPCError) -> ScriptedBackend {
      guard let value = backend.withLock({ $0.value }) else { throw RPCError(.unavailable, "gone") }
      return value
    }
  }

  fileprivate func issue() -> Auth.TokenPair {
    state.withLock { state in
      state.issued += 1
      state.refreshToken = "r\(state.issued)"
      state.goodTokens.insert("a\(state.issued)")
      var time = Google.Timestamp()
      time.seconds = clockSeconds() + state.lifetime
      return .init(
        accessToken: "a\(state.issued)", accessExpireTime: time, refreshToken: state.refreshToken)
    }
  }

  fileprivate func check(_ context: ServerContext) throws(RPCError) {
    let header = context.metadata["authorization"] ?? ""
    let token = String(header.dropFirst("Bearer ".count))
    if !state.withLock({ $0.goodTokens.contains(token) }) {
      throw RPCError(.unauthenticated, "the access token has expired")
    }
  }
}

private struct ScriptedAuth: Auth.AuthService {
  let box: ScriptedBackend.Box

  func signIn(
    _ request: Auth.SignInRequest, _ context: ServerContext
  ) async throws -> Auth.SignInResponse {
    guard case .password(let password)? = request.credential, password.password == "right" else {
      throw RPCError(.unauthenticated, "wrong handle or password")
    }
    return .init(
      user: .init(name: "users/\(password.identifier)", handle: password.identifier),
      tokens: try box.get().issue())
  }

  func refreshSession(
    _ request: Auth.RefreshSessionRequest, _ context: ServerContext
  ) async throws -> Auth.RefreshSessionResponse {
    let backend = try box.get()
    let isGood = backend.state.withLock { state in
      state.refreshes += 1
      return request.refreshToken == state.refreshToken && !state.refusesRefresh
    }
    if !isGood { throw RPCError(.unauthenticated, "the session was revoked") }
    // Long enough for others to ask meanwhile.
    try? await Task.sleep(for: .milliseconds(1))
    return .init(tokens: backend.issue())
  }

  func getUser(
    _ request: Auth.GetUserRequest, _ context: ServerContext
  ) async throws -> Auth.GetUserResponse {
    try box.get().check(context)
    return .init(user: .init(name: "users/ana", handle: "ana"))
  }
}

private struct ScriptedChat: Chat.ChatService {
  let box: ScriptedBackend.Box

  func subscribe(
    _ request: Chat.SubscribeRequest, _ out: ResponseWriter<Chat.SubscribeResponse>,
    _ context: ServerContext
  ) async throws {
    let backend = try box.get()
    try backend.check(context)
    let steps = backend.state.withLock { state in
      state.resumed.append(request.resumeToken)
      state.heartbeats.append(request.heartbeatInterval)
      return state.streams.isEmpty ? [ScriptedBackend.Step.hang] : state.streams.removeFirst()
    }
    for step in steps {
      switch step {
      case .frame(let frame): try await out.send(frame)
      case .fail(let error): throw error
      case .finish: return
      // Ended by the client's going away, which cancels this task.
      case .hang: try await Task.sleep(for: .seconds(3600))
      }
    }
  }

  func sendMessage(
    _ request: Chat.SendMessageRequest, _ context: ServerContext
  ) async throws -> Chat.SendMessageResponse {
    let backend = try box.get()
    try backend.check(context)
    return try backend.state.withLock { state throws(RPCError) in
      state.attempts.append(request.messageId)
      if state.stuckChats.contains(request.parent) { throw RPCError(.unavailable, "stuck") }
      let isNew = state.stored[request.messageId] == nil
      let isRefused = state.sendFailures.first.map { $0.code == .permissionDenied } ?? false
      if isNew, !isRefused {
        var message = Chat.Message(name: "\(request.parent)/messages/\(request.messageId)")
        message.sequence = Int64(state.order.count + 1)
        message.content = request.content
        state.stored[request.messageId] = message
        state.order.append(request.messageId)
      }
      if !state.sendFailures.isEmpty { throw state.sendFailures.removeFirst() }
      return .init(message: state.stored[request.messageId], duplicate: !isNew)
    }
  }
}
