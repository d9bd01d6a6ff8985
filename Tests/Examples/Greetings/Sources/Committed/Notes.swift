#if canImport(VencejoProtobuf)
  // Generated beside this file by `swift package generate-protobuf`; a real package commits it.
#endif
