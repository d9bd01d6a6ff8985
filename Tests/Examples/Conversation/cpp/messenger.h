// A client of Vencejo's messenger: a session, an outbox, a cache that misses nothing, files.
//
// Whatever must outlive the process is in one SQLite file. Copy this into your program and throw
// away what you do not need; conversation.cc shows it at work.
#pragma once

#include <grpcpp/grpcpp.h>
#include <sqlite3.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "vencejo/auth/v1/auth.grpc.pb.h"
#include "vencejo/chat/v1/chat.grpc.pb.h"

namespace auth = vencejo::auth::v1;
namespace chat = vencejo::chat::v1;

// A call that failed, and why in a word that programs may rely on; "" when nobody said.
struct CallFailed : std::runtime_error {
  explicit CallFailed(const grpc::Status& status);
  grpc::StatusCode code;
  std::string reason;
  // Whether another attempt may succeed.
  bool may_go_away() const;
};

// A UUID of version 7: time first, so that ids sort as they were made.
std::string new_id();
// SHA-256.
std::string digest(const std::string& data);
std::string hexadecimal(const std::string& bytes);

// A random time up to half a second, doubled with each failure, up to 30 s.
struct Backoff {
  void wait();
  void reset() { most = std::chrono::milliseconds(500); }
  std::chrono::milliseconds most{500};
};

using Row = std::vector<std::string>;

// The SQLite file. Lock the messenger's mutex around each use.
class Cache {
 public:
  explicit Cache(const std::string& path);
  ~Cache() { sqlite3_close(database_); }
  // Runs a statement; values are bound as text, which columns of numbers turn into numbers.
  std::vector<Row> run(const std::string& sql, const Row& values = {});
  std::string kept(const std::string& name);
  void keep(const std::string& name, const std::string& value);

 private:
  sqlite3* database_ = nullptr;
};

class Messenger {
 public:
  Messenger(const std::string& address, const std::string& folder, std::string handle,
            std::string password);

  // By the refresh token of last time or by password; makes the account when there is none.
  void sign_in();

  // A unary call in the user's name; refreshes the session once when that is what it takes.
  template <class Request, class Response>
  Response call(grpc::Status (chat::ChatService::Stub::*method)(grpc::ClientContext*,
                                                                const Request&, Response*),
                const Request& request) {
    Response response;
    authorized([&](grpc::ClientContext& context) {
      return (chats.get()->*method)(&context, request, &response);
    });
    return response;
  }

  // Puts a message into the outbox and empties it: each is sent once, though it may take many
  // attempts.
  void send(const std::string& parent, const std::string& text, const std::string& reply_to = "",
            const std::string& attachment = "");
  void empty_outbox();

  // Subscribes again and again, each time from where the cache stands, until stop().
  void follow();
  void stop();

  // The first row of a query, once there is one.
  Row wait(const std::string& what, const std::string& query, const Row& values = {});
  void wait_until(const std::string& what, const std::function<bool()>& holds);
  std::vector<Row> rows(const std::string& query, const Row& values = {});
  // All messages of a chat, oldest first, page by page from the newest.
  std::vector<chat::Message> history(const std::string& parent);

  // Uploads a file, or goes on where an upload with this id broke; answers the attachment's name.
  // At the offset `until`, when it is not negative, it breaks, as a network would.
  std::string upload(const std::string& data, const std::string& name, const std::string& id,
                     long until = -1);
  // A file, or a range of it. The whole is checked against its digest.
  std::string download(const std::string& name, long offset = 0, long limit = 0);

  std::unique_ptr<chat::ChatService::Stub> chats;
  std::string user;
  // Not kept: what is not in the log either.
  std::vector<chat::TypingEvent> typing;
  bool caught_up = false;
  int resets = 0;

 private:
  void authorized(const std::function<grpc::Status(grpc::ClientContext&)>& body);
  void authorize(grpc::ClientContext& context);
  bool refresh();
  void signed_in(const auth::User& who, const auth::TokenPair& tokens);
  void take(const auth::TokenPair& tokens);
  grpc::Status listen(Backoff& backoff);
  void apply(const std::vector<chat::SubscribeResponse>& frames, const std::string& token);
  void apply(const chat::SubscribeResponse& frame);
  void put(const chat::Message& message);

  std::string handle_, password_, access_token_;
  std::unique_ptr<auth::AuthService::Stub> auth_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Cache cache_;
  std::atomic<bool> over_{false};
  grpc::ClientContext* stream_ = nullptr;
};
