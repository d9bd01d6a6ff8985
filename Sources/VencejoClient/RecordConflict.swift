public import VencejoAPI
import VencejoProtobuf
public import VencejoRPC

/// Three versions of a record that two devices changed at once, as CloudKit tells them with
/// `serverRecordChanged`: what both began with, what the server has now, what this device has.
public struct RecordConflict: Sendable, Equatable {
  /// What this device read before it changed anything; nil when it did not keep that.
  public var ancestor: Record.Record?
  public var server: Record.Record
  public var client: Record.Record

  public init(ancestor: Record.Record?, server: Record.Record, client: Record.Record) {
    self.ancestor = ancestor
    self.server = server
    self.client = client
  }

  /// The conflict that an error tells of; nil when it is another error.
  ///
  /// - Parameter client: what was to be saved.
  public init?(_ error: RPCError, ancestor: Record.Record?, client: Record.Record) {
    guard let server = error.detail(Record.RecordConflict.self)?.serverRecord else { return nil }
    self.init(ancestor: ancestor, server: server, client: client)
  }

  /// Fields that both sides changed, and not to the same value, in alphabetical order. Without an
  /// ancestor: all that differ.
  public var fields: [String] {
    names.filter { name in
      let (old, theirs, ours) = values(of: name)
      return theirs != ours && (ancestor == nil || (theirs != old && ours != old))
    }
  }

  /// The server's version with this device's changes: a field that only one side changed is that
  /// side's (a removal is a change), and `choose` decides where both did. Nil removes the field.
  /// It carries the server's change tag, so that saving it fails again only if there was another
  /// change meanwhile.
  public func merged(
    _ choose: (_ field: String, _ server: Record.Value?, _ client: Record.Value?) -> Record.Value?
  ) -> Record.Record {
    let undecided = Set(fields)
    var record = server
    for name in names {
      let (old, theirs, ours) = values(of: name)
      if undecided.contains(name) {
        record.fields[name] = choose(name, theirs, ours)
      } else if ours != old {
        record.fields[name] = ours
      }
    }
    return record
  }

  private var names: [String] {
    Set(server.fields.keys).union(client.fields.keys).union(ancestor?.fields.keys ?? [:].keys)
      .sorted()
  }

  private func values(
    of name: String
  ) -> (old: Record.Value?, theirs: Record.Value?, ours: Record.Value?) {
    (ancestor?.fields[name], server.fields[name], client.fields[name])
  }
}

extension RecordDatabase {
  /// Saves a record if the server's version is still the one that was read, and otherwise what
  /// `resolve` makes of the conflict, until a save meets no other device's.
  ///
  /// - Parameters:
  ///   - record: with the change tag that was read; without one the record must be new.
  ///   - ancestor: as it was read.
  ///   - resolve: answers what to save; nil leaves the server's version.
  /// - Returns: the record as it is on the server.
  /// - Throws: what the server says of a save that is refused for another reason; ABORTED after
  ///   ten conflicts in a row.
  public func save(
    _ record: Record.Record, ancestor: Record.Record?,
    resolving resolve: (RecordConflict) -> Record.Record?
  ) async throws(RPCError) -> Record.Record {
    var (record, ancestor) = (record, ancestor)
    for _ in 0..<10 {
      // A field that went away has to be named to go away there.
      let changed = ancestor.map { Self.changedFields(of: record, since: $0) } ?? []
      if let ancestor, changed.isEmpty, record.parent == ancestor.parent { return ancestor }
      do throws(RPCError) {
        return try await save(
          .init(record: record, changedKeys: changed, savePolicy: .ifServerRecordUnchanged))
      } catch {
        guard let conflict = RecordConflict(error, ancestor: ancestor, client: record) else {
          throw error
        }
        guard let resolved = resolve(conflict) else { return conflict.server }
        record = resolved
        record.changeTag = conflict.server.changeTag
        ancestor = conflict.server
      }
    }
    throw RPCError(.aborted, "other devices changed the record each time")
  }

  private static func changedFields(
    of record: Record.Record, since old: Record.Record
  ) -> [String] {
    Set(record.fields.keys).union(old.fields.keys)
      .filter { record.fields[$0] != old.fields[$0] }.sorted()
  }
}
