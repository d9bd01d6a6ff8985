import VencejoAPI
import VencejoClient
import VencejoProtobuf
import VencejoRPC
import VencejoTools

extension CommandRunner {
  func signUp(
    _ handle: String, _ password: String?, _ displayName: String?, _ email: String?
  ) async throws {
    let secret = try await secret(password, "new password: ")
    if password == nil, mode == .interactive, try await self.secret(nil, "again: ") != secret {
      throw Failure("the two passwords differ", exitCode: ExitCode.usage)
    }
    let user = try await client.signUp(
      handle: handle, password: secret, displayName: displayName ?? "", email: email ?? "")
    try await welcome(user, "signed up and in")
  }

  func signIn(_ handle: String, _ password: String?) async throws {
    let kept = profile.session(handle: handle)
    if password == nil, let kept {
      await forgetUser()
      await resume(kept)
      do {
        let user = try await client.currentUser()
        return try await welcome(user, "signed in")
      } catch let error as RPCError where error.code == .unauthenticated {
        // The session kept is over; a password makes a new one.
      }
    }
    let secret = try await secret(password, "password: ")
    let user = try await client.signIn(handle: handle, password: secret)
    try await welcome(user, "signed in")
  }

  private func welcome(_ user: Auth.User, _ what: String) async throws {
    await forgetUser()
    place.user = user.name
    profile.place = place
    await show(user, [StyledText("\(what) as \(VisibleText.clean(user.handle))", .faint)])
    try await becomeLive()
    await promptChanged()
  }

  /// The password given, or asked for.
  private func secret(_ given: String?, _ prompt: String) async throws -> String {
    if let given { return given }
    guard let typed = await display.askSecret(prompt) else {
      throw Failure(
        "a password is needed", hint: "in a script: sign-in HANDLE PASSWORD",
        exitCode: ExitCode.usage)
    }
    return typed
  }

  func signOut(_ everywhere: Bool) async throws {
    await forgetUser()
    place.user = ""
    profile.place = place
    try await client.signOut(everywhere: everywhere)
    if !json { await display.show([StyledText("signed out", .faint)]) }
    await promptChanged()
  }

  /// At the start: the session of the last run, when the server still takes it.
  func restore() async {
    guard !place.user.isEmpty, let session = profile.load(user: place.user) else { return }
    await resume(session)
    guard mode == .interactive else { return }
    do throws(RPCError) {
      let user = try await client.currentUser()
      await note("signed in as \(VisibleText.clean(user.handle))")
      try? await becomeLive()
    } catch {
      if error.code == .unauthenticated {
        await note("your last session is over; sign in again: sign-in \(session.handle)")
      } else {
        await note("the server does not answer: \(error.message)")
        try? await becomeLive()
      }
    }
  }

  /// Goes on with a session and what this device keeps of its account.
  private func resume(_ session: Session) async {
    await client.resume(session)
    if let failure = client.storageFailure {
      await note("what this device keeps cannot be used: \(VisibleText.clean(failure.message))")
    }
    // Written in an earlier run; the console says when they are sent.
    for pending in client.outbox.pending {
      if case .text(let content)? = pending.content.kind { late[pending.id] = content.text }
      ownMessages.insert(pending.id)
    }
  }

  func whoAmI() async throws {
    guard await client.session != nil else {
      throw Failure(
        "nobody is signed in", hint: "sign-in HANDLE, or sign-up HANDLE",
        exitCode: ExitCode.status(.unauthenticated))
    }
    let user = try await client.currentUser()
    var line = StyledText(VisibleText.clean(user.handle), .strong)
    line.append("  \(user.name)", .faint)
    if user.role == .administrator { line.append("  administrator", .badge) }
    await show(user, [line])
  }

  func server() async throws {
    let before = TimeText.local.now
    let info = try await client.serverInfo()
    let skew = (info.serverTime?.seconds ?? before) - before
    await show(
      info,
      [
        StyledText("Vencejo \(VisibleText.clean(info.serverVersion))", .strong),
        StyledText("  sign-up \(info.signUpOpen ? "open" : "closed")"),
        StyledText(
          "  speaks \(info.packages.map { VisibleText.clean($0) }.joined(separator: ", "))"),
        StyledText("  clock \(abs(skew) <= 1 ? "as ours" : "\(skew) s ahead of ours")"),
      ])
  }
}
