import Testing
import VencejoServer

/// Lines as phones of several systems and languages write them.
@Suite struct WhatsAppTests {
  private func at(
    _ year: Int, _ month: Int, _ day: Int, _ hour: Int, _ minute: Int, _ second: Int = 0
  )
    -> Int64
  {
    // Days from a table of months: another way than the code under test goes.
    let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    func isLeap(_ year: Int) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }
    var days = (1970..<year).reduce(0) { $0 + (isLeap($1) ? 366 : 365) }
    for index in 0..<month - 1 { days += lengths[index] + (index == 1 && isLeap(year) ? 1 : 0) }
    days += day - 1
    return Int64(((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000
  }

  @Test(arguments: [
    "31/12/23, 21:41 - Ana: hola", "31/12/2023, 21:41 - Ana: hola", "31.12.23, 21:41 - Ana: hola",
    "12/31/23, 9:41 PM - Ana: hola", "12/31/23, 9:41\u{202F}PM - Ana: hola",
    "31/12/23, 9:41 p. m. - Ana: hola", "31/12/23 9:41 p.\u{00A0}m. - Ana: hola",
    "2023-12-31, 21:41 - Ana: hola", "2023/12/31, 21:41 - Ana: hola",
    "[31/12/23, 21:41:00] Ana: hola", "[31.12.23, 21:41:00] Ana: hola",
    "\u{200E}[31/12/2023, 21:41:00] Ana: hola", "[12/31/23, 9:41:00 PM] Ana: hola",
    "[2023-12-31, 9:41:00\u{202F}PM] Ana: hola", "[2023/12/31 下午9:41:00] Ana: hola",
    "31.12.2023, 21.41 - Ana: hola", "31/12/2566, 21:41 - Ana: hola",
    "\u{200F}٣١\u{200F}/١٢\u{200F}/٢٠٢٣، ٩:٤١ م - Ana: hola", "31. 12. 2023 21:41 - Ana: hola",
    "21:41, 31/12/2023 - Ana: hola", "[21:41:00, 31/12/2023] Ana: hola",
    "31/12/2023 à 21:41 - Ana: hola", "31/12/2023 às 21:41 - Ana: hola",
    "31.12.2023 klo 21.41 - Ana: hola", "31.12.23 г., 21:41 - Ana: hola",
    "31.12.23, 21:41 Uhr - Ana: hola", "2023年12月31日 下午9:41 - Ana: hola",
    "2023/12/31 晚上9:41 - Ana: hola", "[2023. 12. 31. 오후 9:41:00] Ana: hola",
    "2023. 12. 31. 21:41 - Ana: hola", "2023-12-31 9:41 p.m. - Ana: hola",
    "[2023-12-31, 9:41:00\u{00A0}p.m.] Ana: hola", "31/12/23, 9:41 μ.μ. - Ana: hola",
    "31/12/2023, 9:41\u{202F}ب.ظ. - Ana: hola", "31/12/2023 21 h 41 - Ana: hola",
    // The Persian 10th of Dey 1402, in Persian digits.
    "۱۴۰۲/۱۰/۱۰، ۲۱:۴۱ - Ana: hola", "[۱۴۰۲/۱۰/۱۰،\u{200F} ۲۱:۴۱:۰۰] Ana: hola",
    "३१/१२/२३, ९:४१ pm - Ana: hola", "31-12-2023 21:41 - ~\u{202F}Ana: hola",
    "31-12-2023 21:41 - \u{202A}Ana\u{202C}: hola", "2023. 12. 31. 오후 9:41 - Ana: hola",
    "12/31/23, 21:41 PM - Ana: hola", "31/12/2023, 21:41 p. m. - Ana: hola",
  ])
  func readsTheDate(_ line: String) {
    let export = WhatsAppExport(line)
    #expect(export.entries.count == 1)
    #expect(export.entries.first?.localTime == at(2023, 12, 31, 21, 41))
    #expect(export.entries.first?.sender == "Ana")
    #expect(export.entries.first?.text == "hola")
    #expect(export.strayLines == 0)
  }

  @Test func halvesOfTheDayInChinese() {
    let times = ["凌晨12:05", "中午12:05", "中午11:05", "下午1:05", "晚上11:05"].map {
      WhatsAppExport("2023/12/31 \($0) - A: x").entries.first?.localTime
    }
    #expect(
      times == [
        at(2023, 12, 31, 0, 5), at(2023, 12, 31, 12, 5), at(2023, 12, 31, 11, 5),
        at(2023, 12, 31, 13, 5), at(2023, 12, 31, 23, 5),
      ])
  }

  /// Days of the Persian calendar as almanacs have them.
  @Test(arguments: [
    ("1403/01/01", 2024, 3, 20), ("1402/12/29", 2024, 3, 19), ("1399/12/30", 2021, 3, 20),
    ("1400/01/01", 2021, 3, 21), ("1404/06/31", 2025, 9, 22), ("1405/01/01", 2026, 3, 21),
    ("1395/07/01", 2016, 9, 22),
  ])
  func persianDays(_ text: String, _ year: Int, _ month: Int, _ day: Int) {
    #expect(
      WhatsAppExport("\(text), 21:41 - A: x").entries.first?.localTime
        == at(year, month, day, 21, 41))
  }

  @Test func aHalfOfTheDayThatIsUnknownCostsNoMessage() {
    let export = WhatsAppExport("31/12/23, 9:41 xyz - Ana: hola")
    #expect(export.entries.map(\.text) == ["hola"])
  }

  /// Days that no month has: such a line is what somebody wrote.
  @Test(arguments: ["29/02/2023", "30/02/2024", "31/04/2023", "31/11/2023"])
  func noSuchDay(_ day: String) {
    let export = WhatsAppExport("28/02/2023, 10:00 - Ana: x\n\(day), 10:00 - y: z")
    #expect(export.entries.map(\.text) == ["x\n\(day), 10:00 - y: z"])
  }

  @Test func linesThatOnlyLookLikeHeadersAreText() {
    let export = WhatsAppExport(
      """
      [31/12/23, 21:41:00] Ana: look what Ben wrote:
      30/12/23, 20:00 - Ben: something
      [31/12/23, 21:42:00] Ben: 1/13/23, 10:00 - no
      [31/12/23, 21:43:00] Ana: and
      [99/99/99, 21:43:00] nothing
      """)
    #expect(export.entries.map(\.sender) == ["Ana", "Ben", "Ana"])
    #expect(
      export.entries.first?.text == "look what Ben wrote:\n30/12/23, 20:00 - Ben: something")
    #expect(export.entries.last?.text == "and\n[99/99/99, 21:43:00] nothing")
  }

  @Test func deletedAndEdited() {
    let export = WhatsAppExport(
      """
      31/12/23, 21:40 - Ana: This message was deleted
      31/12/23, 21:41 - Ana: You deleted this message.
      31/12/23, 21:42 - Ana: See you at 8 <This message was edited>
      31/12/23, 21:43 - Ana: \u{200E}Diese Nachricht wurde gelöscht.
      31/12/23, 21:44 - Ana: Hasta luego \u{200E}<Se editó este mensaje.>
      31/12/23, 21:45 - Ana: a < b and c > d
      31/12/23, 21:46 - Ana: यह संदेश हटा दिया गया है
      31/12/23, 21:47 - Ana: This message was deleted by admin Ben.
      """)
    #expect(
      export.entries.map(\.isDeleted) == [true, true, false, true, false, false, true, true])
    #expect(
      export.entries.map(\.isEdited) == [false, false, true, false, true, false, false, false])
    #expect(
      export.entries.map(\.text) == [
        "", "", "See you at 8", "", "Hasta luego", "a < b and c > d", "", "",
      ])
  }

  @Test func filesOfSeveralLanguages() {
    let export = WhatsAppExport(
      """
      [31/12/23, 21:40:00] Ana: \u{200E}report.pdf • \u{200E}3 pages \u{200E}<attached: 00000034-report.pdf>
      [31/12/23, 21:40:01] Ana: \u{200E}<adjunto: 00000035-PHOTO-2023-12-31-21-40-01.jpg>
      [31/12/23, 21:40:02] Ana: the beach
      \u{200E}<Anhang: 00000036-PHOTO.jpg>
      [31/12/23, 21:40:03] Ana: \u{200E}imagen omitida
      [31/12/23, 21:40:04] Ana: \u{200E}Bild weggelassen
      [31/12/23, 21:40:05] Ana: \u{200E}image absente
      [31/12/23, 21:40:05] Ana: \u{200E}Kontaktkarte ausgelassen
      [31/12/23, 21:40:06] Ana: \u{200E}<附件：00000037-PHOTO.jpg>
      """)
    #expect(
      export.entries.map(\.attachment) == [
        "00000034-report.pdf", "00000035-PHOTO-2023-12-31-21-40-01.jpg", "00000036-PHOTO.jpg", "",
        "", "", "", "00000037-PHOTO.jpg",
      ])
    #expect(export.entries.map(\.text) == ["", "", "the beach", "", "", "", "", ""])
    let android = WhatsAppExport(
      """
      31/12/23, 21:40 - Ana: IMG-20231231-WA0001.jpg (archivo adjunto)
      31/12/23, 21:41 - Ana: \u{200E}My holiday plan.pdf (Datei angehängt)
      31/12/23, 21:42 - Ana: notes.txt (fichier joint)
      the notes
      31/12/23, 21:43 - Ana: <Multimedia omitido>
      31/12/23, 21:44 - Ana: <Файл пропущен>
      31/12/23, 21:45 - Ana: <b>
      31/12/23, 21:46 - Ana: <Xyz abc>
      31/12/23, 21:47 - Ana: <Xyz abc>
      31/12/23, 21:48 - Ana: photo.jpg (I like it)
      31/12/23, 21:49 - Ana: قائمة.pdf (الملف مرفق)
      """)
    #expect(
      android.entries.map(\.attachment) == [
        "IMG-20231231-WA0001.jpg", "My holiday plan.pdf", "notes.txt", "", "", nil, "", "", nil,
        "قائمة.pdf",
      ])
    #expect(android.entries[2].text == "the notes")
  }

  @Test func pollsPlacesAndNoticesOnIOS() {
    let export = WhatsAppExport(
      """
      [31/12/23, 21:40:00] Trip: \u{200E}Messages and calls are end-to-end encrypted.
      [31/12/23, 21:41:00] Ana: \u{200E}POLL:
      Where?
      \u{200E}OPTION: Rome (2 votes)
      \u{200E}OPTION: Oslo (0 votes)
      [31/12/23, 21:42:00] Ben: \u{200E}Location: https://maps.google.com/?q=41.9,12.5
      [31/12/23, 21:43:00] Ana: \u{200E}Ana added Cleo
      [31/12/23, 21:44:00] Ana: \u{200E}Missed voice call, \u{200E}tap to call back
      """)
    #expect(export.entries.map(\.sender) == [nil, "Ana", "Ben", nil, nil])
    #expect(
      export.entries[1].text == "POLL:\nWhere?\nOPTION: Rome (2 votes)\nOPTION: Oslo (0 votes)")
  }

  @Test func noticesWithColons() {
    let export = WhatsAppExport(
      """
      31/12/23, 21:40 - Ana changed the subject from “A: old” to “B: new”
      31/12/23, 21:41 - \u{202A}+34 600 00 00 00\u{202C}: hi
      31/12/23, 21:42 - Dr. B: 10:30 works: yes
      """)
    #expect(export.entries.map(\.sender) == [nil, "+34 600 00 00 00", "Dr. B"])
    #expect(export.entries.last?.text == "10:30 works: yes")
  }

  @Test func midnightAndNoonAreTwelve() {
    let times = ["12:05 AM", "12:05 PM", "1:05 AM"].map {
      WhatsAppExport("12/31/23, \($0) - A: x").entries.first?.localTime
    }
    #expect(times == [at(2023, 12, 31, 0, 5), at(2023, 12, 31, 12, 5), at(2023, 12, 31, 1, 5)])
  }

  @Test func oneMessageMayHaveManyLines() {
    let export = WhatsAppExport(
      """
      1/2/24, 10:00 - Ana: first
      second: with a colon

      31/12/23 no header
      1/2/24, 10:01 - Ben: next

      """)
    #expect(export.entries.map(\.sender) == ["Ana", "Ben"])
    guard export.entries.count == 2 else { return }
    #expect(export.entries[0].text == "first\nsecond: with a colon\n\n31/12/23 no header")
    #expect(export.entries[1].text == "next")
    #expect(export.senders == ["Ana", "Ben"])
  }

  @Test func noticesAndAttachments() {
    let export = WhatsAppExport(
      "31/12/23, 21:40 - Messages and calls are end-to-end encrypted.\r\n"
        + "31/12/23, 21:41 - Ana: <Media omitted>\r\n"
        + "31/12/23, 21:42 - Ana: IMG-20231231-WA0001.jpg (file attached)\r\nlook\r\n"
        + "[31/12/23, 21:43:00] Ana: \u{200E}<attached: 00000012-PHOTO.jpg>\r\n"
        + "[31/12/23, 21:44:00] Ana: \u{200E}image omitted\r\n"
        + "[31/12/23, 21:45:00] Trip: \u{200E}Ana created this group\r\n"
        + "31/12/23, 21:46 - Ana: see a.b (not a file, I think)\r\n")
    #expect(export.entries.count == 7)
    guard export.entries.count == 7 else { return }
    #expect(export.entries.map(\.sender) == [nil, "Ana", "Ana", "Ana", "Ana", nil, "Ana"])
    #expect(
      export.entries.map(\.attachment) == [
        nil, "", "IMG-20231231-WA0001.jpg", "00000012-PHOTO.jpg", "", nil, nil,
      ])
    #expect(export.entries[2].text == "look")
    #expect(export.entries[5].text == "Ana created this group")
    #expect(export.entries[6].text == "see a.b (not a file, I think)")
  }

  @Test func theOrderOfDatesComesFromAllOfThem() {
    let american = WhatsAppExport("1/2/24, 10:00 - A: x\n1/13/24, 10:00 - A: y")
    #expect(american.dateOrder == .monthDayYear)
    #expect(american.entries.map(\.localTime) == [at(2024, 1, 2, 10, 0), at(2024, 1, 13, 10, 0)])
    let european = WhatsAppExport("1/2/24, 10:00 - A: x\n13/2/24, 10:00 - A: y")
    #expect(european.dateOrder == .dayMonthYear)
    // Nothing above 12: only one order lets time go forward.
    let forward = WhatsAppExport(
      "1/11/24, 10:00 - A: x\n1/12/24, 10:00 - A: y\n2/1/24, 10:00 - A: z")
    #expect(forward.dateOrder == .monthDayYear)
    #expect(WhatsAppExport("1/2/24, 9:00 PM - A: x").dateOrder == .monthDayYear)
    #expect(WhatsAppExport("1/2/24, 21:00 - A: x").dateOrder == .dayMonthYear)
  }

  @Test(arguments: ["", "\n\n", "hello", "[", "1/", "99/99/99, 99:99 - A: x", "31/12/23, 21:41 -"])
  func whatIsNoExportTrapsNothing(_ text: String) {
    #expect(WhatsAppExport(text).entries.isEmpty || text.hasSuffix("-"))
  }
}
