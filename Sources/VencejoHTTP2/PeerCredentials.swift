import Glibc

/// Who connected over a Unix domain socket, as the kernel noted when the connection was made
/// (unix(7), SO_PEERCRED): nothing the peer says of itself.
public struct PeerCredentials: Sendable, Hashable {
  /// The process; 0 when it lives in another namespace.
  public let processID: Int32
  /// The effective user.
  public let userID: UInt32
  /// The effective group.
  public let groupID: UInt32

  init?(of fd: Int32) {
    // struct ucred: a pid, a uid and a gid of 32 bits each.
    var words: (Int32, UInt32, UInt32) = (0, 0, 0)
    var size = socklen_t(MemoryLayout.size(ofValue: words))
    guard getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &words, &size) == 0, size == 12 else {
      return nil
    }
    (processID, userID, groupID) = words
  }
}
