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
    "31-12-2023 21:41 - \u{202A}Ana\u{202C}: hola", "2023. 12. 31. 오후 9:41 - Ana: hola",
  ])
  func readsTheDate(_ line: String) {
    let export = WhatsAppExport(line)
    #expect(export.entries.count == 1)
    #expect(export.entries.first?.localTime == at(2023, 12, 31, 21, 41))
    #expect(export.entries.first?.sender == "Ana")
    #expect(export.entries.first?.text == "hola")
    #expect(export.strayLines == 0)
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
