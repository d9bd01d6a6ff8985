// What client and server of gRPC's interoperability tests share: the official
// flags, and the flags of messages.
#pragma once

#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>

#include <grpcpp/grpcpp.h>

// Exported by the library for tests like these: whether the message received
// last came compressed is known nowhere else.
uint32_t grpc_call_test_only_get_message_flags(grpc_call* call);

template <class Context>
bool came_compressed(Context* context) {
  constexpr uint32_t compressed = 0x40000000;  // GRPC_WRITE_INTERNAL_TEST_ONLY_WAS_COMPRESSED
  return grpc_call_test_only_get_message_flags(context->c_call()) & compressed;
}

struct Flags {
  std::map<std::string, std::string> values;

  Flags(int count, char** arguments) {
    for (int i = 1; i < count; ++i) {
      const std::string argument = arguments[i];
      const auto equals = argument.find('=');
      if (argument.rfind("--", 0) != 0 || equals == std::string::npos)
        throw std::runtime_error("unknown argument " + argument);
      values[argument.substr(2, equals - 2)] = argument.substr(equals + 1);
    }
  }

  std::string text(const std::string& name, const std::string& otherwise = "") const {
    const auto found = values.find(name);
    return found == values.end() || found->second.empty() ? otherwise : found->second;
  }
  bool is(const std::string& name) const { return text(name) == "true"; }
};

inline std::string contents(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::ostringstream all;
  all << file.rdbuf();
  return all.str();
}
