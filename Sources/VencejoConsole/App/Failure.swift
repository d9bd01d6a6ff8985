import VencejoProtobuf
import VencejoRPC
import VencejoTools

/// A command that did not succeed, ready to be shown.
struct Failure: Error, Sendable {
  var report: ErrorReport

  init(_ message: String, hint: String? = nil, exitCode: Int32 = ExitCode.failure) {
    report = ErrorReport(message: message, hint: hint, exitCode: exitCode)
  }

  /// An error of a call, with the reason of its details, what to do next, and the place in the
  /// line that it is about.
  init(_ error: RPCError, line: String) {
    let info = error.detail(GoogleRPC.ErrorInfo.self)
    let name = Self.name(error.code)
    report = ErrorReport(
      message: error.message.isEmpty ? name : error.message,
      reason: info.map { $0.reason.isEmpty ? name : "\(name), \($0.reason)" } ?? name,
      hint: Self.hint(error, info), exitCode: ExitCode.status(error.code))
    let violations = error.detail(GoogleRPC.BadRequest.self)?.fieldViolations ?? []
    for violation in violations where !violation.description.isEmpty {
      report.message += "; \(violation.field): \(violation.description)"
    }
    let words = violations.map(\.field) + (info?.metadata.values.sorted() ?? [])
    if let range = Self.place(of: words, in: Array(line)) {
      report.line = line
      report.range = range
    }
  }

  /// `NOT_FOUND` for `notFound`.
  private static func name(_ code: StatusCode) -> String { "\(code)" }

  private static func hint(_ error: RPCError, _ info: GoogleRPC.ErrorInfo?) -> String? {
    if let delay = error.detail(GoogleRPC.RetryInfo.self)?.retryDelay {
      return "try again in \(max(1, delay.seconds)) s"
    }
    switch info?.reason {
    case "BAD_CREDENTIAL": return "check handle and password; new here? sign-up HANDLE"
    case "CHAT_NOT_FOUND": return "your chats: chats"
    case "ZONE_NOT_FOUND": return "the zones there are: zones; a new one: zone new NAME"
    case "RECORD_NOT_FOUND": return "what there is: query TYPE"
    case "RECORD_CHANGED": return "see it as it is now: get NAME"
    case "HANDLE_TAKEN": return "choose another handle, or: sign-in HANDLE"
    case "USER_NOT_FOUND": return "look for people: users find TEXT"
    default: break
    }
    switch error.code {
    case .unavailable: return "is the server running? vencejo serve; another one: --server ADDR"
    case .unauthenticated: return "sign in: sign-in HANDLE"
    case .deadlineExceeded: return "the server did not answer in time; try again"
    case .permissionDenied: return "this needs other rights; who you are: whoami"
    case .unimplemented: return "this server does not know that; what it is: server"
    default: return nil
    }
  }

  /// The first of the words that stands in the line, as `word=…`, else by itself; of the path of a
  /// field and of a resource's name the last segment counts.
  private static func lastSegment(_ word: String) -> [Character] {
    Array(word.split { $0 == "." || $0 == "/" }.last ?? "")
  }

  private static func place(of words: [String], in line: [Character]) -> Range<Int>? {
    for word in words.map(lastSegment) where !word.isEmpty {
      for start in line.indices where line[start...].starts(with: word) {
        let end = start + word.count
        guard start == 0 || !line[start - 1].isLetter, end == line.count || !line[end].isLetter
        else { continue }
        if end < line.count, line[end] == "=" {
          return start..<(line[end...].firstIndex { $0.isWhitespace } ?? line.count)
        }
        return start..<end
      }
    }
    return nil
  }
}
