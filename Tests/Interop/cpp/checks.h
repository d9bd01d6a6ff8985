// A few lines in place of a test framework: each check prints one line, and
// the program's exit code says whether all passed.
#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include <grpcpp/grpcpp.h>

inline int failures = 0;

inline void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

inline void require_ok(const grpc::Status& status, const std::string& what) {
  require(status.ok(), what + ": " + std::to_string(status.error_code()) + " " +
                           status.error_message());
}

inline void require_code(const grpc::Status& status, grpc::StatusCode code,
                         const std::string& what) {
  require(status.error_code() == code,
          what + ": " + std::to_string(status.error_code()) + " " + status.error_message());
}

inline void check(const char* name, const std::function<void()>& body) {
  try {
    body();
    std::printf("ok      %s\n", name);
  } catch (const std::exception& error) {
    std::printf("FAILED  %s: %s\n", name, error.what());
    ++failures;
  }
  std::fflush(stdout);
}

// A context that gives up after a while, so that a check fails instead of hanging.
inline std::unique_ptr<grpc::ClientContext> context(int milliseconds = 20000) {
  auto made = std::make_unique<grpc::ClientContext>();
  made->set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(milliseconds));
  return made;
}

inline std::shared_ptr<grpc::Channel> channel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(8 << 20);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

inline long long now_micros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}
