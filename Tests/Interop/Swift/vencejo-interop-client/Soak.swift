import InteropTesting
import Synchronization
import VencejoRPC

/// `rpc_soak` and `channel_soak`: large unary calls, one after the other in each worker, on one
/// channel or on a new one each. The flags are those of other implementations' clients.
extension Cases {
  private final class Tally: Sendable {
    let done = Atomic(0)
    let failures = Atomic(0)
  }

  static func soak(_ setting: Setting, newChannels: Bool) async throws {
    let flags = setting.flags
    let iterations = flags.int("soak_iterations", default: 10)
    let workers = max(1, flags.int("soak_num_threads", default: 1))
    let allowed = flags.int("soak_max_failures", default: 0)
    let longest = Duration.milliseconds(
      flags.int("soak_per_iteration_max_acceptable_latency_ms", default: 1_000))
    let pause = Duration.milliseconds(flags.int("soak_min_time_ms_between_rpcs", default: 0))
    let end = ContinuousClock.now + .seconds(flags.int("soak_overall_timeout_seconds", default: 10))
    let responseSize = flags.int("soak_response_size", default: largeResponse)
    let request = GRPCTesting.SimpleRequest(
      responseType: .compressable, responseSize: Int32(clamping: responseSize),
      payload: zeros(flags.int("soak_request_size", default: largeRequest)))

    let tally = Tally()
    try await withThrowingTaskGroup { group in
      for worker in 0..<workers {
        let share = iterations / workers + (worker < iterations % workers ? 1 : 0)
        group.addTask {
          for iteration in 0..<share where ContinuousClock.now < end {
            let begin = ContinuousClock.now
            do {
              let channel = newChannels ? try setting.makeChannel() : setting.channel
              let response = try await GRPCTesting.TestClient(channel).unaryCall(
                request, .init(timeout: end - begin))
              try check(response.payload, is: responseSize)
              let took = ContinuousClock.now - begin
              try expect(took <= longest, "it took \(took)")
            } catch {
              write("worker \(worker), iteration \(iteration): \(error)", to: 2)
              tally.failures.add(1, ordering: .relaxed)
            }
            tally.done.add(1, ordering: .relaxed)
            // The pause is the flag's.
            if pause > .zero { try await Task.sleep(until: begin + pause) }
          }
        }
      }
      try await group.waitForAll()
    }
    let done = tally.done.load(ordering: .relaxed)
    let failures = tally.failures.load(ordering: .relaxed)
    write("\(done) of \(iterations) iterations, \(failures) failures", to: 1)
    try expect(done == iterations, "only \(done) of \(iterations) iterations were in time")
    try expect(failures <= allowed, "\(failures) failures where \(allowed) are allowed")
  }
}
