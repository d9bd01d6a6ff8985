import Glibc
public import VencejoStore

extension Backend {
  /// Makes an account administrator, in a data folder that no server uses.
  ///
  /// - Throws: ``StoreError`` when the folder is missing, in use or no data folder, and
  ///   USER_NOT_FOUND when nobody has the handle.
  public static func grantAdministrator(
    to handle: String, inDataFolder directory: String
  ) async throws(StoreError) {
    // Opening would make it, and leave it behind.
    guard access(directory, F_OK) == 0 else {
      throw StoreError(.notFound, "DATA_FOLDER_NOT_FOUND", "there is no data folder \(directory)")
    }
    let store = try Store.open(directory: directory)
    defer { store.close() }
    try await store.grantAdministrator(handle: handle.lowercased())
  }
}
