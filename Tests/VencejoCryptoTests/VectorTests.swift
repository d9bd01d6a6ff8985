import Testing
import VencejoCrypto

private func hex(_ bytes: [UInt8]) -> String {
  let digits = Array("0123456789abcdef")
  return String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
}

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

@Suite struct VectorTests {
  // FIPS 180-4 examples, as published by NIST's CSRC.
  @Test(arguments: [
    ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
  ])
  func sha256(_ input: String, _ digest: String) {
    #expect(hex(SHA256.digest(input)) == digest)
  }

  // RFC 4231, test cases 1, 2, 3, 6 and 7.
  @Test(arguments: [
    (
      [UInt8](repeating: 0x0b, count: 20), bytes("Hi There"),
      "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
    ),
    (
      bytes("Jefe"), bytes("what do ya want for nothing?"),
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    ),
    (
      [UInt8](repeating: 0xaa, count: 20), [UInt8](repeating: 0xdd, count: 50),
      "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"
    ),
    (
      [UInt8](repeating: 0xaa, count: 131),
      bytes("Test Using Larger Than Block-Size Key - Hash Key First"),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
    ),
    (
      [UInt8](repeating: 0xaa, count: 131),
      bytes(
        "This is a test using a larger than block-size key and a larger than block-size data. "
          + "The key needs to be hashed before being used by the HMAC algorithm."),
      "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"
    ),
  ])
  func hmac(_ key: [UInt8], _ message: [UInt8], _ code: String) {
    #expect(hex(HMACSHA256.authenticate(message, key: key)) == code)
  }

  // RFC 7914, section 12.
  @Test(arguments: [
    (
      "", "", Scrypt.Parameters(cost: 16, blockSize: 1, parallelism: 1),
      "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442"
        + "fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906"
    ),
    (
      "password", "NaCl", Scrypt.Parameters(cost: 1024, blockSize: 8, parallelism: 16),
      "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162"
        + "2eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640"
    ),
    (
      "pleaseletmein", "SodiumChloride",
      Scrypt.Parameters(cost: 16384, blockSize: 8, parallelism: 1),
      "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
        + "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"
    ),
  ])
  func scrypt(_ password: String, _ salt: String, _ cost: Scrypt.Parameters, _ key: String) throws {
    let derived = try Scrypt.derive(
      password: bytes(password), salt: bytes(salt), parameters: cost, length: 64)
    #expect(hex(derived) == key)
  }

  @Test func scryptRefusesImpossibleParameters() {
    let bad = [
      Scrypt.Parameters(cost: 15, blockSize: 8, parallelism: 1),
      Scrypt.Parameters(cost: 1, blockSize: 8, parallelism: 1),
      Scrypt.Parameters(cost: -16, blockSize: 8, parallelism: 1),
      Scrypt.Parameters(cost: 1 << 40, blockSize: 8, parallelism: 1),
      Scrypt.Parameters(cost: 16, blockSize: 0, parallelism: 1),
    ]
    for parameters in bad {
      #expect(throws: CryptoError.self) {
        try Scrypt.derive(password: [1], salt: [2], parameters: parameters, length: 32)
      }
    }
  }

  // RFC 4648, section 10, in the URL alphabet without padding; and the two letters that differ.
  @Test(arguments: [
    ("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"),
    ("fooba", "Zm9vYmE"), ("foobar", "Zm9vYmFy"),
  ])
  func base64(_ plain: String, _ coded: String) {
    #expect(Base64URL.encode(bytes(plain)) == coded)
    #expect(Base64URL.decode(coded) == bytes(plain))
  }

  @Test func base64UsesTheURLAlphabetAndOneFormOnly() {
    #expect(Base64URL.encode([0xfb, 0xff]) == "-_8")
    #expect(Base64URL.decode("-_8") == [0xfb, 0xff])
    for text in ["-_9", "+/8", "Zg==", "Z", "Zm9vY", "Zm 9v", "Zh"] {
      #expect(Base64URL.decode(text) == nil, "\(text)")
    }
  }

  @Test func comparesWithoutShortCut() {
    #expect(constantTimeEquals([1, 2, 3], [1, 2, 3]))
    #expect(!constantTimeEquals([1, 2, 3], [1, 2, 4]))
    #expect(!constantTimeEquals([1, 2, 3], [1, 2]))
    #expect(constantTimeEquals([UInt8](), [UInt8]()))
  }

  // RFC 9562, appendix A.6.
  @Test func uuid7ReadsTheExampleOfTheRFC() throws {
    let id = try #require(UUID(parsing: "017F22E2-79B0-7CC3-98C4-DC0C0C07398F"))
    #expect(id.version == 7)
    #expect(id.milliseconds == 0x017F_22E2_79B0)
    #expect(id.description == "017f22e2-79b0-7cc3-98c4-dc0c0c07398f")
    #expect(UUID(bytes: id.bytes) == id)
  }

  @Test func uuid7IsOrderedByTimeAndUnique() {
    let ids = (0..<1000).map { UUID.v7(milliseconds: 1_700_000_000_000 + Int64($0)) }
    #expect(ids == ids.sorted())
    #expect(Set((0..<10_000).map { _ in UUID.v7(milliseconds: 5) }).count == 10_000)
    #expect(ids.allSatisfy { $0.version == 7 && $0.bytes[8] & 0xc0 == 0x80 })
  }

  @Test(arguments: [
    "", "017f22e279b07cc398c4dc0c0c07398f", "017f22e2-79b0-7cc3-98c4-dc0c0c07398",
    "017f22e2-79b0-7cc3-98c4-dc0c0c07398f0", "017g22e2-79b0-7cc3-98c4-dc0c0c07398f",
    "017f22e2079b0-7cc3-98c4-dc0c0c07398f",
  ])
  func uuidRefuses(_ text: String) { #expect(UUID(parsing: text) == nil) }

  @Test func randomBytesDiffer() {
    #expect(SecureRandom.bytes(0) == [])
    #expect(SecureRandom.bytes(33).count == 33)
    #expect(SecureRandom.bytes(16) != SecureRandom.bytes(16))
  }
}
