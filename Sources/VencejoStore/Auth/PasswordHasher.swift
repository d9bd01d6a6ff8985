import Synchronization
import VencejoCrypto
import VencejoSQLite

/// A password as it is kept.
struct PasswordHash: Sendable {
  var salt: [UInt8]
  var parameters: Scrypt.Parameters
  var hash: [UInt8]
}

/// Hashes passwords on threads of its own: scrypt takes a core for a good part of a second, so
/// at most two at once, and a bounded queue.
final class PasswordHasher: Sendable {
  private let parameters: Scrypt.Parameters
  private let queue = WorkQueue<@Sendable () -> Void>(capacity: 64)
  private let threads: [WorkerThread]

  init(_ parameters: Scrypt.Parameters) throws(StoreError) {
    self.parameters = parameters
    let queue = self.queue
    threads = (0..<2).compactMap { index in
      WorkerThread("vencejo-hash-\(index)") {
        while let jobs = queue.pop(1) { for job in jobs { job() } }
      }
    }
    guard threads.count == 2 else {
      throw StoreError(.resourceExhausted, "NO_THREADS", "the system gives no more threads")
    }
  }

  func close() {
    queue.close()
    for thread in threads { thread.join() }
  }

  /// A fresh hash of `password`.
  func hash(_ password: String) async throws(StoreError) -> PasswordHash {
    let salt = SecureRandom.bytes(16)
    let hash = try await derive(password, salt, parameters)
    return PasswordHash(salt: salt, parameters: parameters, hash: hash)
  }

  /// Whether `password` is the one of `stored`. Without a stored one it takes as long, and the
  /// answer is no: a caller cannot tell from the time whether an account exists.
  func verify(_ password: String, _ stored: PasswordHash?) async throws(StoreError) -> Bool {
    let known =
      stored
      ?? PasswordHash(
        salt: [UInt8](repeating: 0, count: 16), parameters: parameters, hash: [])
    let hash = try await derive(password, known.salt, known.parameters)
    return constantTimeEquals(hash, known.hash)
  }

  /// Whether the caller of a waiting job has gone; nobody computes for them then, or a flood of
  /// calls given up would keep those out who still wait.
  private final class Abandonment: Sendable {
    let happened = Atomic(false)
  }

  private func derive(_ password: String, _ salt: [UInt8], _ parameters: Scrypt.Parameters)
    async throws(StoreError) -> [UInt8]
  {
    let abandonment = Abandonment()
    return try await withTaskCancellationHandler {
      await withUnsafeContinuation {
        (continuation: UnsafeContinuation<Result<[UInt8], StoreError>, Never>) in
        let admission = queue.push {
          guard !abandonment.happened.load(ordering: .relaxed) else {
            return continuation.resume(returning: .failure(Self.abandoned))
          }
          continuation.resume(returning: Self.compute(password, salt, parameters))
        }
        switch admission {
        case .accepted: break
        case .closed: continuation.resume(returning: .failure(Store.closed))
        case .full: continuation.resume(returning: .failure(Self.full))
        }
      }
    } onCancel: {
      abandonment.happened.store(true, ordering: .relaxed)
    }.get()
  }

  private static func compute(
    _ password: String, _ salt: [UInt8], _ parameters: Scrypt.Parameters
  ) -> Result<[UInt8], StoreError> {
    do throws(CryptoError) {
      return .success(
        try Scrypt.derive(
          password: Array(password.utf8), salt: salt, parameters: parameters, length: 32))
    } catch {
      return .failure(StoreError(.resourceExhausted, "HASHING_FAILED", "\(error)"))
    }
  }

  private static var full: StoreError {
    StoreError(
      .resourceExhausted, "TOO_MANY_SIGN_INS", "too many passwords wait to be checked",
      details: [.retry(afterMilliseconds: 2000)])
  }

  /// Nobody reads it: the call is over.
  private static var abandoned: StoreError {
    StoreError(.unavailable, "CALL_GIVEN_UP", "the call was given up before its turn came")
  }
}
