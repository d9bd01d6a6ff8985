import VencejoStore

/// What who holds the data folder may do, also while a server uses it. All of it blocks.
extension Backend {
  /// Makes an account administrator; a running server notices within half a minute.
  ///
  /// - Throws: ``StoreError`` when the folder is missing or no data folder, and
  ///   USER_NOT_FOUND when nobody has the handle.
  public static func grantAdministrator(to handle: String, inDataFolder directory: String) throws {
    try Store.administer(directory: directory) { _ = try $0.grantAdministrator(handle: handle) }
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
