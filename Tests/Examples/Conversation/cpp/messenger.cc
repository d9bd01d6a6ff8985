#include "messenger.h"

#include <cctype>
#include <random>
#include <thread>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace {

std::string reason_of(const grpc::Status& status) {
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  if (!details.ParseFromString(status.error_details())) return "";
  for (const auto& detail : details.details())
    if (detail.UnpackTo(&info)) return info.reason();
  return "";
}

std::mt19937_64& dice() {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  return generator;
}

std::string emoji(const google::protobuf::RepeatedPtrField<chat::ReactionSummary>& reactions) {
  std::string all;
  for (const auto& reaction : reactions) all += (all.empty() ? "" : " ") + reaction.emoji();
  return all;
}

// A call waits for a connection, as the channel tries again by itself, but must end some time.
void limit(grpc::ClientContext& context) {
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
}

}  // namespace

CallFailed::CallFailed(const grpc::Status& status)
    : std::runtime_error(status.error_message()),
      code(status.error_code()),
      reason(reason_of(status)) {}

bool CallFailed::may_go_away() const {
  return code == grpc::StatusCode::UNAVAILABLE || code == grpc::StatusCode::UNKNOWN ||
         code == grpc::StatusCode::DEADLINE_EXCEEDED ||
         code == grpc::StatusCode::RESOURCE_EXHAUSTED;
}

std::string hexadecimal(const std::string& bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string new_id() {
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  std::string id;
  for (int shift = 40; shift >= 0; shift -= 8) id += static_cast<char>(now >> shift);
  for (int i = 0; i < 10; ++i) id += static_cast<char>(dice()());
  id[6] = static_cast<char>((id[6] & 0x0f) | 0x70);
  id[8] = static_cast<char>((id[8] & 0x3f) | 0x80);
  std::string text = hexadecimal(id);
  for (const int place : {20, 16, 12, 8}) text.insert(place, "-");
  return text;
}

void Backoff::wait() {
  std::uniform_int_distribution<long> some(0, most.count());
  std::this_thread::sleep_for(std::chrono::milliseconds(some(dice())));
  most = std::min<std::chrono::milliseconds>(most * 2, std::chrono::seconds(30));
}

// The cache.

Cache::Cache(const std::string& path) {
  if (sqlite3_open(path.c_str(), &database_) != SQLITE_OK)
    throw std::runtime_error("cannot open " + path);
  for (const char* sql : {
           "PRAGMA journal_mode = WAL",
           "CREATE TABLE IF NOT EXISTS state(name TEXT PRIMARY KEY, value TEXT)",
           "CREATE TABLE IF NOT EXISTS message(chat TEXT, sequence INTEGER, name TEXT, "
           "sender TEXT, text TEXT, reaction TEXT, attachment TEXT, reply_to TEXT, "
           "PRIMARY KEY(chat, sequence))",
           "CREATE TABLE IF NOT EXISTS marker(chat TEXT, user TEXT, read INTEGER, "
           "PRIMARY KEY(chat, user))",
           "CREATE TABLE IF NOT EXISTS outbox(id TEXT PRIMARY KEY, request BLOB)",
       })
    run(sql);
}

std::vector<Row> Cache::run(const std::string& sql, const Row& values) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK)
    throw std::runtime_error(sqlite3_errmsg(database_));
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> owner(statement, sqlite3_finalize);
  for (size_t i = 0; i < values.size(); ++i)
    sqlite3_bind_text64(statement, static_cast<int>(i) + 1, values[i].data(), values[i].size(),
                        SQLITE_TRANSIENT, SQLITE_UTF8);
  std::vector<Row> found;
  int code;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    Row row;
    for (int i = 0; i < sqlite3_column_count(statement); ++i) {
      const auto* start = static_cast<const char*>(sqlite3_column_blob(statement, i));
      row.emplace_back(start ? start : "", sqlite3_column_bytes(statement, i));
    }
    found.push_back(std::move(row));
  }
  if (code != SQLITE_DONE) throw std::runtime_error(sqlite3_errmsg(database_));
  return found;
}

std::string Cache::kept(const std::string& name) {
  const auto found = run("SELECT value FROM state WHERE name = ?", {name});
  return found.empty() ? "" : found[0][0];
}

void Cache::keep(const std::string& name, const std::string& value) {
  run("INSERT OR REPLACE INTO state VALUES (?, ?)", {name, value});
}

// The session.

Messenger::Messenger(const std::string& address, const std::string& folder, std::string handle,
                     std::string password)
    : handle_(std::move(handle)),
      password_(std::move(password)),
      cache_(folder + "/messenger.sqlite") {
  grpc::ChannelArguments arguments;
  // The watchdog: a connection that does not answer pings is dead, and so are its streams.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 40000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  const auto channel =
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  auth_ = auth::AuthService::NewStub(channel);
  chats = chat::ChatService::NewStub(channel);
}

void Messenger::sign_in() {
  if (refresh()) return;
  grpc::ClientContext first;
  auth::SignInRequest request;
  request.mutable_password()->set_identifier(handle_);
  request.mutable_password()->set_password(password_);
  request.set_device_label("example in C++");
  auth::SignInResponse response;
  const auto status = auth_->SignIn(&first, request, &response);
  if (status.ok()) return signed_in(response.user(), response.tokens());
  const CallFailed failed(status);
  if (failed.reason != "BAD_CREDENTIAL") throw failed;

  grpc::ClientContext second;
  auth::SignUpRequest account;
  account.set_request_id(new_id());
  account.set_handle(handle_);
  account.set_password(password_);
  account.set_display_name(handle_);
  auth::SignUpResponse made;
  const auto signed_up = auth_->SignUp(&second, account, &made);
  if (!signed_up.ok()) throw CallFailed(signed_up);
  signed_in(made.user(), made.tokens());
}

void Messenger::signed_in(const auth::User& who, const auth::TokenPair& tokens) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    cache_.keep("user", who.name());
    user = who.name();
  }
  take(tokens);
}

void Messenger::take(const auth::TokenPair& tokens) {
  const std::lock_guard<std::mutex> lock(mutex_);
  cache_.keep("refresh_token", tokens.refresh_token());
  access_token_ = tokens.access_token();
}

// A new access token. The refresh token is for one use: its successor is kept at once.
bool Messenger::refresh() {
  auth::RefreshSessionRequest request;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    request.set_refresh_token(cache_.kept("refresh_token"));
    user = cache_.kept("user");
  }
  if (request.refresh_token().empty()) return false;
  grpc::ClientContext context;
  limit(context);
  auth::RefreshSessionResponse response;
  if (!auth_->RefreshSession(&context, request, &response).ok()) return false;
  take(response.tokens());
  return true;
}

void Messenger::authorize(grpc::ClientContext& context) {
  const std::lock_guard<std::mutex> lock(mutex_);
  context.AddMetadata("authorization", "Bearer " + access_token_);
}

void Messenger::authorized(const std::function<grpc::Status(grpc::ClientContext&)>& body) {
  for (int attempt = 0;; ++attempt) {
    grpc::ClientContext context;
    limit(context);
    authorize(context);
    const auto status = body(context);
    if (status.ok()) return;
    const CallFailed failed(status);
    if (attempt > 0 || failed.reason != "ACCESS_TOKEN_EXPIRED" || !refresh()) throw failed;
  }
}

// Sending.

void Messenger::send(const std::string& parent, const std::string& text,
                     const std::string& reply_to, const std::string& attachment) {
  chat::SendMessageRequest request;
  request.set_parent(parent);
  // The id makes a repeat harmless when only the answer was lost.
  request.set_message_id(new_id());
  request.set_reply_to(reply_to);
  if (attachment.empty()) {
    request.mutable_content()->mutable_text()->set_text(text);
  } else {
    request.mutable_content()->mutable_media()->add_attachments(attachment);
    request.mutable_content()->mutable_media()->set_caption(text);
  }
  rows("INSERT INTO outbox VALUES (?, ?)", {request.message_id(), request.SerializeAsString()});
  empty_outbox();
}

void Messenger::empty_outbox() {
  Backoff backoff;
  for (;;) {
    const auto next = rows("SELECT id, request FROM outbox ORDER BY id LIMIT 1");
    if (next.empty()) return;
    chat::SendMessageRequest request;
    request.ParseFromString(next[0][1]);
    try {
      call(&chat::ChatService::Stub::SendMessage, request);
    } catch (const CallFailed& failed) {
      // Only what may go away is worth another attempt.
      if (!failed.may_go_away()) throw;
      backoff.wait();
      continue;
    }
    backoff.reset();
    rows("DELETE FROM outbox WHERE id = ?", {next[0][0]});
  }
}

// Hearing.

void Messenger::follow() {
  Backoff backoff;
  while (!over_) {
    const auto status = listen(backoff);
    caught_up = false;
    if (over_) return;
    const CallFailed failed(status);
    if (failed.reason == "ACCESS_TOKEN_EXPIRED") {
      refresh();
    } else if (failed.code == grpc::StatusCode::UNAUTHENTICATED) {
      throw failed;
    }
    backoff.wait();
  }
}

void Messenger::stop() {
  over_ = true;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stream_) stream_->TryCancel();
}

grpc::Status Messenger::listen(Backoff& backoff) {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  authorize(context);
  chat::SubscribeRequest request;
  request.set_include_ephemeral(true);
  request.set_auto_mark_delivered(true);
  request.mutable_snapshot()->set_chat_limit(100);
  request.mutable_snapshot()->set_messages_per_chat(100);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    request.set_resume_token(cache_.kept("resume_token"));
    stream_ = &context;
  }
  const auto stream = chats->Subscribe(&context, request);
  std::vector<chat::SubscribeResponse> pending;
  chat::SubscribeResponse frame;
  while (stream->Read(&frame)) {
    backoff.reset();
    if (frame.has_typing()) {
      const std::lock_guard<std::mutex> lock(mutex_);
      typing.push_back(frame.typing());
      changed_.notify_all();
    } else if (frame.has_closing()) {
      std::this_thread::sleep_for(std::chrono::seconds(frame.closing().retry_delay().seconds()));
    } else {
      pending.push_back(frame);
    }
    // Frames up to a token are one change. What comes behind the last token, before a stream
    // breaks, comes again.
    if (!frame.resume_token().empty()) {
      apply(pending, frame.resume_token());
      pending.clear();
    }
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stream_ = nullptr;
  }
  return stream->Finish();
}

// Frames and token in one transaction: neither a gap nor half a change can come of it.
void Messenger::apply(const std::vector<chat::SubscribeResponse>& frames,
                      const std::string& token) {
  const std::lock_guard<std::mutex> lock(mutex_);
  cache_.run("BEGIN IMMEDIATE");
  try {
    for (const auto& frame : frames) apply(frame);
    cache_.keep("resume_token", token);
    cache_.run("COMMIT");
  } catch (...) {
    cache_.run("ROLLBACK");
    throw;
  }
  changed_.notify_all();
}

// Each event so that twice is as good as once; what we do not know we ignore.
void Messenger::apply(const chat::SubscribeResponse& frame) {
  switch (frame.event_case()) {
    case chat::SubscribeResponse::kReset:
      // The snapshot behind it replaces everything. The outbox stays.
      ++resets;
      cache_.run("DELETE FROM message");
      cache_.run("DELETE FROM marker");
      break;
    case chat::SubscribeResponse::kChatSnapshot:
      for (const auto& message : frame.chat_snapshot().messages()) put(message);
      break;
    case chat::SubscribeResponse::kMessageCreated:
      put(frame.message_created().message());
      break;
    case chat::SubscribeResponse::kMessageUpdated:
      put(frame.message_updated().message());
      break;
    case chat::SubscribeResponse::kMessagesDeleted: {
      const auto& deleted = frame.messages_deleted();
      const std::string change =
          deleted.scope() == chat::DELETE_SCOPE_FOR_EVERYONE
              ? "UPDATE message SET text = '', attachment = '', reaction = ''"
              : "DELETE FROM message";
      for (const auto& span : deleted.ranges())
        cache_.run(change + " WHERE chat = ? AND sequence BETWEEN ? AND ?",
                   {deleted.chat(), std::to_string(span.first_sequence()),
                    std::to_string(span.last_sequence())});
      break;
    }
    case chat::SubscribeResponse::kReactionChanged:
      cache_.run("UPDATE message SET reaction = ? WHERE name = ?",
                 {emoji(frame.reaction_changed().reactions()), frame.reaction_changed().message()});
      break;
    case chat::SubscribeResponse::kReceiptMoved: {
      const auto& moved = frame.receipt_moved();
      cache_.run(
          "INSERT INTO marker VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET "
          "read = max(read, excluded.read)",
          {moved.chat(), moved.user(), std::to_string(moved.read_sequence())});
      break;
    }
    case chat::SubscribeResponse::kChatRemoved:
      cache_.run("DELETE FROM message WHERE chat = ?", {frame.chat_removed().chat()});
      break;
    case chat::SubscribeResponse::kCaughtUp:
      caught_up = true;
      break;
    default:
      break;
  }
}

void Messenger::put(const chat::Message& message) {
  const auto& media = message.content().media();
  cache_.run("INSERT OR REPLACE INTO message VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
             {message.name().substr(0, message.name().find("/messages/")),
              std::to_string(message.sequence()), message.name(), message.sender(),
              message.content().text().text() + media.caption(), emoji(message.reactions()),
              media.attachments_size() > 0 ? media.attachments(0) : "", message.reply_to()});
}

// Looking.

std::vector<Row> Messenger::rows(const std::string& query, const Row& values) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return cache_.run(query, values);
}

void Messenger::wait_until(const std::string& what, const std::function<bool()>& holds) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!changed_.wait_for(lock, std::chrono::minutes(1), holds))
    throw std::runtime_error(handle_ + " waited in vain for " + what);
}

Row Messenger::wait(const std::string& what, const std::string& query, const Row& values) {
  std::vector<Row> found;
  wait_until(what, [&] {
    found = cache_.run(query, values);
    return !found.empty();
  });
  return found[0];
}

std::vector<chat::Message> Messenger::history(const std::string& parent) {
  std::vector<chat::Message> messages;
  chat::ListMessagesRequest request;
  request.set_parent(parent);
  request.set_page_size(20);
  do {
    const auto page = call(&chat::ChatService::Stub::ListMessages, request);
    messages.insert(messages.begin(), page.messages().begin(), page.messages().end());
    request.set_page_token(page.older_page_token());
  } while (!request.page_token().empty());
  return messages;
}
