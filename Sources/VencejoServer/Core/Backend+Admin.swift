public import VencejoStore

extension Backend {
  /// Makes an account administrator, also while a server uses the data folder: it notices
  /// within half a minute. Blocks.
  ///
  /// - Throws: ``StoreError`` when the folder is missing or no data folder, and
  ///   USER_NOT_FOUND when nobody has the handle.
  public static func grantAdministrator(
    to handle: String, inDataFolder directory: String
  ) throws(StoreError) {
    try Store.grantAdministrator(directory: directory, handle: handle)
  }
}
