public import VencejoCrypto

/// Which service a hook belongs to.
public enum HookPurpose: Int64, Sendable, Hashable {
  /// A push endpoint of the messenger.
  case push = 1
  /// A subscription of the record store; ``Hook/subject`` tells which.
  case subscription = 2
}

/// How what is posted is written.
public enum HookFormat: Int64, Sendable, Hashable {
  case json = 1
  case binary = 2
}

/// What a hook's owner chose.
public struct HookFlags: OptionSet, Sendable, Hashable {
  public let rawValue: Int64
  public init(rawValue: Int64) { self.rawValue = rawValue }

  /// The text of messages stays here.
  public static let redacted = HookFlags(rawValue: 1)
  /// Also what concerns the server as a whole.
  public static let serverEvents = HookFlags(rawValue: 2)
}

/// An address that a user's events are posted to.
public struct Hook: Sendable, Hashable {
  /// Internal key; never on the wire.
  public let key: Int64
  public let id: UUID
  /// Internal key of its owner.
  public let user: Int64
  public let userID: UUID
  public let purpose: HookPurpose
  public let subject: [UInt8]
  public let uri: String
  /// What its posts are signed with.
  public let secret: [UInt8]
  public let format: HookFormat
  public let flags: HookFlags
  public let createTime: Int64
  public let isActive: Bool
  /// Why the last attempts failed or it is disabled; empty while all is well.
  public let fault: String
  public let lastSuccessTime: Int64?
  /// Events that wait, counted up to ``HookLimits/waiting``.
  public let waiting: Int64
}

/// A hook to be made.
public struct NewHook: Sendable {
  public var purpose: HookPurpose
  public var subject: [UInt8]
  /// Checked by the caller, who knows what addresses are allowed.
  public var uri: String
  public var secret: [UInt8]
  public var format: HookFormat
  public var flags: HookFlags

  public init(
    _ purpose: HookPurpose, subject: [UInt8] = [], uri: String, secret: [UInt8],
    format: HookFormat = .json, flags: HookFlags = []
  ) {
    self.purpose = purpose
    self.subject = subject
    self.uri = uri
    self.secret = secret
    self.format = format
    self.flags = flags
  }
}

/// What a delivery is about: who renders it, and what its keys mean.
public struct HookKind: RawRepresentable, Sendable, Hashable {
  public let rawValue: Int64
  public init(rawValue: Int64) { self.rawValue = rawValue }

  /// Keys: kind of notification, chat, sequence, actor, position of the notification.
  public static let notification = HookKind(rawValue: 1)
  /// Keys: user, code, its end.
  public static let passwordReset = HookKind(rawValue: 2)
  /// Keys: the report's id.
  public static let report = HookKind(rawValue: 3)
  /// Keys are the record service's.
  public static let firing = HookKind(rawValue: 10)
}

/// An event on its way to a hook.
public struct HookDelivery: Sendable, Hashable {
  public let key: Int64
  /// The same at each attempt: receivers know by it what they have.
  public let id: UUID
  public let hook: Hook
  public let kind: HookKind
  public let keys: [UInt8]
  public let eventTime: Int64
  /// That failed so far.
  public let attempts: Int64
}

/// How an attempt went.
public enum HookOutcome: Sendable, Hashable {
  /// Taken, or there is nothing left to be sent.
  case done
  /// To be tried again, and why it failed.
  case failed(String)
  /// The receiver will never take this one.
  case refused(String)
  /// The receiver wants no more at all.
  case gone(String)
}

/// Bounds of hooks.
public enum HookLimits {
  public static let perUser: Int64 = 20
  /// Events that may wait for one hook; one more disables it.
  public static let waiting: Int64 = 10_000
  /// Microseconds after which a hook that takes nothing is disabled.
  public static let patience: Int64 = 3 * 86_400_000_000
  /// Attempts for an event whose content the receiver refuses.
  public static let refusals: Int64 = 10
  /// Between two attempts, at most.
  public static let longestDelay: Int64 = 3_600_000_000

  /// Microseconds before the next attempt after `attempts` failures: a random time between half
  /// of 2^attempts seconds and all of it, an hour at most.
  public static func delay(afterFailures attempts: Int64) -> Int64 {
    let full = attempts > 12 ? longestDelay : min(longestDelay, 1_000_000 << max(0, attempts - 1))
    return Int64.random(in: full / 2...full)
  }
}
