/// Records of one type, as a table has them: encoded where they are read, so that the writer only
/// writes.
public struct BulkRows: Sendable {
  struct Row: Sendable {
    var id: RecordID
    /// The encoded fields.
    var blob: [UInt8]
    /// The type of each field's value, 0 without one: rows alike need be checked once.
    var form: [UInt8]
    /// Of all lists.
    var elements: Int
  }

  public let type: String
  /// Their names, sorted as they are encoded.
  let fields: [String]
  private let order: [Int]
  private(set) var rows: [Row] = []

  public var count: Int { rows.count }
  /// The records' names, in order.
  public var ids: [RecordID] { rows.map(\.id) }

  /// `fields` of the columns.
  public init(type: String, fields: [String]) {
    self.type = type
    order = fields.indices.sorted { fields[$0] < fields[$1] }
    self.fields = order.map { fields[$0] }
  }

  /// Adds a row, with a value or none for every column.
  public mutating func add(_ id: RecordID, _ values: [RecordValue?]) {
    var count = 0
    for case .some in values { count += 1 }
    var writer = RecordCoding.begin(count)
    var form = [UInt8](repeating: 0, count: order.count)
    var elements = 0
    for (place, index) in order.enumerated() {
      guard let value = values[index] else { continue }
      writer.text(fields[place])
      RecordCoding.write(value, to: &writer)
      if case .list(let list) = value {
        elements += list.count
        form[place] = 0x80 | (list.first.map(Self.code) ?? 0x40)
      } else {
        form[place] = Self.code(value)
      }
    }
    rows.append(Row(id: id, blob: writer.bytes, form: form, elements: elements))
  }

  private static func code(_ value: RecordValue) -> UInt8 {
    RecordSchema.FieldKind(value).map { UInt8(truncatingIfNeeded: $0.rawValue) } ?? 0x3F
  }

  public mutating func removeAll() { rows = [] }
}
