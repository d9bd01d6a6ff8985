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
  /// The fields' names as they are encoded.
  private let names: [[UInt8]]
  /// Of the row under way.
  private var scratch = KeysetWriter()

  public var count: Int { rows.count }
  /// The records' names, in order.
  public var ids: [RecordID] { rows.map(\.id) }

  /// `fields` of the columns.
  public init(type: String, fields: [String]) {
    self.type = type
    order = fields.indices.sorted { fields[$0] < fields[$1] }
    self.fields = order.map { fields[$0] }
    names = self.fields.map {
      var writer = KeysetWriter()
      writer.text($0)
      return writer.bytes
    }
  }

  /// What a column has in a row.
  public enum Cell {
    case none
    /// A text, in UTF-8.
    case text(UnsafeBufferPointer<UInt8>)
    case value(RecordValue)
  }

  /// Adds a row, with a value or none for every column.
  public mutating func add(_ id: RecordID, _ values: [RecordValue?]) {
    add(id) { values[$0].map { .value($0) } ?? .none }
  }

  /// Adds a row: `cell` says what it has in a column.
  public mutating func add(_ id: RecordID, _ cell: (Int) -> Cell) {
    var count = 0
    var elements = 0
    var form = [UInt8](repeating: 0, count: order.count)
    scratch.removeAll()
    for (place, index) in order.enumerated() {
      switch cell(index) {
      case .none: continue
      case .text(let bytes):
        scratch.append(names[place])
        scratch.string(bytes)
        form[place] = UInt8(truncatingIfNeeded: RecordSchema.FieldKind.string.rawValue)
      case .value(let value):
        scratch.append(names[place])
        RecordCoding.write(value, to: &scratch)
        if case .list(let list) = value {
          elements += list.count
          form[place] = 0x80 | (list.first.map(Self.code) ?? 0x40)
        } else {
          form[place] = Self.code(value)
        }
      }
      count += 1
    }
    let blob = RecordCoding.begin(count).bytes + scratch.bytes
    rows.append(Row(id: id, blob: blob, form: form, elements: elements))
  }

  private static func code(_ value: RecordValue) -> UInt8 {
    RecordSchema.FieldKind(value).map { UInt8(truncatingIfNeeded: $0.rawValue) } ?? 0x3F
  }

  public mutating func removeAll() { rows = [] }
}
