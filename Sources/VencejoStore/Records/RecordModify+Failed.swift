// What the failure of one operation means for the others of its batch, where they do not fail
// together: what it would have brought is not there for them.
extension RecordModification {
  typealias Steps = [Result<Step, RecordFailure>]

  /// Plans again what relied on an operation that fails: a record below it or bound to it, and
  /// what is below that.
  mutating func settle(_ steps: inout Steps) throws(StoreError) {
    var places: [RecordID: Int] = [:]
    for (index, operation) in batch.operations.enumerated() { places[operation.id] = index }
    var failed: [Int] = []
    for index in steps.indices { if case .failure = steps[index] { failed.append(index) } }
    guard !failed.isEmpty, failed.count < steps.count else { return }
    var children: [Int: [Int]] = [:]
    var bound: [Int: [Int]] = [:]
    for (index, step) in steps.enumerated() {
      guard case .success(let step) = step, case .save(let type, let fields, let parent) = step.plan
      else { continue }
      let id = batch.operations[index].id
      func place(_ name: String) -> Int? {
        (try? RecordID(zone: id.zone, record: name)).flatMap { places[$0] }
      }
      if !parent.isEmpty, let above = place(parent) { children[above, default: []].append(index) }
      for owner in StoredRecord(id: id, type: type, fields: fields).owners {
        if let target = place(String(decoding: owner, as: UTF8.self)) {
          bound[target, default: []].append(index)
        }
      }
    }
    var again: Set<Int> = []
    for index in failed { again.formUnion(drop(index, children, bound)) }
    // Nothing is planned more often than there are records above it.
    while !again.isEmpty {
      var next: Set<Int> = []
      for index in again.sorted() {
        guard case .success = steps[index] else { continue }
        steps[index] = try plan(batch.operations[index], isAgain: true)
        if case .failure = steps[index] {
          next.formUnion(drop(index, children, bound))
        } else {
          next.formUnion(children[index] ?? [])
        }
      }
      again = next
    }
    // A deletion leaves to the batch what it names: not what fails.
    for (index, operation) in batch.operations.enumerated() {
      guard case .delete = operation, case .success = steps[index] else { continue }
      steps[index] = try plan(operation, isAgain: true)
    }
  }

  /// Forgets what an operation would have brought; answers what relied on it.
  private mutating func drop(
    _ index: Int, _ children: [Int: [Int]], _ bound: [Int: [Int]]
  ) -> [Int] {
    let id = batch.operations[index].id
    named[id] = nil
    newParents[id.record.utf8Key] = nil
    return (children[index] ?? []) + (bound[index] ?? [])
  }
}
