import VencejoAPI
import VencejoStore

/// Where a reader of the log may start.
enum ChatStart {
  case position(Int64)
  case refused(TokenAuthority.Refusal)
}

extension ReadTransaction {
  /// What a chat's resume token is worth in this snapshot.
  func chatStart(of token: String) throws(StoreError) -> ChatStart {
    let position: Int64
    do throws(TokenAuthority.Refusal) {
      position = try tokens.position(ofResumeToken: token, .chat, now: now)
    } catch { return .refused(error) }
    if position < (try logFloor()) { return .refused(.expired) }
    // A position that was never reached: the database went back without telling.
    if position > (try head()) { return .refused(.otherHistory) }
    return .position(position)
  }
}

extension TokenAuthority.Refusal {
  /// What unary calls answer.
  var error: StoreError {
    switch self {
    case .forged, .mismatch:
      .invalid(
        "resume_token", "TOKEN_MISMATCH", "the resume_token is not one of this service")
    case .expired, .otherHistory:
      StoreError(
        .failedPrecondition, "CHANGE_TOKEN_EXPIRED",
        "the resume_token can no longer be honoured: fetch the state afresh")
    }
  }

  /// What streams say in band; nil for a token that is another service's: that is the client's
  /// mistake, and a reset would hide it.
  var reset: Chat.ResetReason? {
    switch self {
    case .forged: .tokenUnknown
    case .expired: .tokenExpired
    case .otherHistory: .serverRestoredFromBackup
    case .mismatch: nil
    }
  }
}
