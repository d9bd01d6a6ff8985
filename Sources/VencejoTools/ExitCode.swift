public import VencejoRPC

/// Exit codes of every command.
public enum ExitCode {
  public static let ok: Int32 = 0
  /// The command could not do its work for a reason outside of gRPC.
  public static let failure: Int32 = 1
  public static let usage: Int32 = 1
  public static let timeout: Int32 = 124
  public static let interrupted: Int32 = 130

  /// 64 and the status code, which keeps clear of the shell's own numbers.
  public static func status(_ code: StatusCode) -> Int32 {
    64 + Int32(truncatingIfNeeded: code.rawValue)
  }
}
