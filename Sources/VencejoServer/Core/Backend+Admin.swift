public import VencejoStore

/// What who holds the data folder may do, also while a server uses it. All of it blocks.
extension Backend {
  /// Makes an account administrator; a running server notices within half a minute.
  ///
  /// - Throws: ``StoreError`` when the folder is missing or no data folder, and
  ///   USER_NOT_FOUND when nobody has the handle.
  public static func grantAdministrator(to handle: String, inDataFolder directory: String) throws {
    try Store.administer(directory: directory) { _ = try $0.grantAdministrator(handle: handle) }
  }

  /// Lines about accounts, or about the sessions or keys of one.
  ///
  /// - Throws: ``StoreError`` with `USER_NOT_FOUND`.
  public static func list(_ what: String, of handle: String?, inDataFolder directory: String)
    throws -> [String]
  {
    try Store.administer(directory: directory) { transaction in
      func day(_ time: Int64) -> String { ExportText.time(time) }
      guard let handle else {
        var lines: [String] = []
        var after: Int64 = 0
        while true {
          let page = try transaction.everyAccount(after: after)
          for account in page {
            lines.append(
              "\(account.handle)\t\(account.kind)\t\(account.state)\t\(account.role)\t"
                + "\(day(account.createTime))\tusers/\(account.id)")
          }
          guard let last = page.last else { return lines }
          after = last.key
        }
      }
      let account = try transaction.account(named: handle)
      if what == "sessions" {
        return try transaction.sessions(ofUser: account.key).map {
          "\($0.id)\t\($0.deviceLabel.isEmpty ? $0.deviceID : $0.deviceLabel)\t"
            + "\(day($0.createTime))\t\(day($0.lastSeenTime))"
        }
      }
      let caller = try transaction.principal(ofHandle: handle)
      return try transaction.listKeys(of: account.id, pageSize: 200, by: caller).keys.map {
        "\($0.id)\t\($0.prefix)\t\($0.scopes.joined(separator: " "))\t\($0.displayName)"
      }
    }
  }

  /// Does what an operator asks for: by the server that uses the folder, or at once without one.
  /// Blocks until it is done.
  ///
  /// - Throws: ``StoreError`` as the task refuses, `SERVER_SILENT` when a server has the folder and
  ///   does not do it within 30 seconds.
  public static func perform(_ task: AdminTask, inDataFolder directory: String) async throws {
    let store: Store
    do throws(StoreError) {
      store = try Store.open(directory: directory)
    } catch {
      guard error.reason == "DATA_FOLDER_IN_USE" else { throw error }
      return try await ask(task, directory)
    }
    defer { store.close() }
    try await store.write { try $0.perform(task) }
    while try await store.write({ try $0.sweepExpired() }) {}
  }

  private static func ask(_ task: AdminTask, _ directory: String) async throws {
    let key = try Store.administer(directory: directory) { try $0.ask(task) }
    for _ in 0..<300 {
      let answer = try Store.administer(directory: directory) { try $0.answer(ofTask: key) }
      if let answer {
        guard answer.isEmpty else {
          let reason = answer.prefix { $0 != ":" }
          throw StoreError(
            .failedPrecondition, String(reason),
            String(answer.dropFirst(reason.count).drop { $0 == ":" || $0 == " " }))
        }
        return
      }
      try await Task.sleep(for: .milliseconds(100))
    }
    throw StoreError(
      .unavailable, "SERVER_SILENT", "the server that uses \(directory) does not answer")
  }

  /// A code with which strangers make accounts, `uses` times within `days`.
  public static func inviteToSignUp(
    uses: Int64, days: Int64, inDataFolder directory: String
  ) throws -> String {
    try Store.administer(directory: directory) {
      try $0.createSignUpCode(uses: uses, lifetime: days * 86_400_000_000)
    }
  }

  /// A code that sets a new password for an account, once and within a day.
  public static func resetPassword(of handle: String, inDataFolder directory: String) throws
    -> String
  {
    try Store.administer(directory: directory) {
      try $0.createResetCode(handle: handle, lifetime: 86_400_000_000)
    }
  }
}
