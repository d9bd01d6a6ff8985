#define _GNU_SOURCE
#include "messenger.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"

enum { CALL_LIMIT = 20000, WAIT_LIMIT = 60000, FIRST_PAUSE = 500, LONGEST_PAUSE = 30000,
       /* Without a word for two and a half heartbeats (20 s each), a stream is dead. */
       SILENCE = 50000 };

#define SERVICE(method) "/vencejo.chat.v1.ChatService/" method

void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  exit(1);
}

int64_t now_milliseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* A UUID of version 7: time first, so that ids sort as they were made. */
void new_id(char text[37]) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  uint64_t now = (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
  uint8_t id[16];
  if (getrandom(id, sizeof id, 0) != sizeof id) fail("no random bytes");
  for (int i = 0; i < 6; i++) id[i] = (uint8_t)(now >> (40 - 8 * i));
  id[6] = (id[6] & 0x0f) | 0x70, id[8] = (id[8] & 0x3f) | 0x80;
  for (int i = 0; i < 16; i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10) *text++ = '-';
    text += sprintf(text, "%02x", id[i]);
  }
}

/* The cache. */

static char *run(struct messenger *m, const char *sql, va_list values) {
  sqlite3_stmt *statement;
  if (sqlite3_prepare_v2(m->cache, sql, -1, &statement, NULL) != SQLITE_OK)
    fail("%s: %s", sql, sqlite3_errmsg(m->cache));
  const char *value;
  for (int i = 1; (value = va_arg(values, const char *)); i++)
    sqlite3_bind_text(statement, i, value, -1, SQLITE_TRANSIENT);
  int code = sqlite3_step(statement);
  char *found = NULL;
  if (code == SQLITE_ROW) {
    const unsigned char *text = sqlite3_column_text(statement, 0);
    found = strdup(text ? (const char *)text : "");
  } else if (code != SQLITE_DONE) {
    fail("%s: %s", sql, sqlite3_errmsg(m->cache));
  }
  sqlite3_finalize(statement);
  return found;
}

char *query(struct messenger *m, const char *sql, ...) {
  va_list values;
  va_start(values, sql);
  char *found = run(m, sql, values);
  va_end(values);
  return found;
}

char *await(struct messenger *m, const char *what, const char *sql, ...) {
  for (int64_t end = now_milliseconds() + WAIT_LIMIT; now_milliseconds() < end;) {
    va_list values;
    va_start(values, sql);
    char *found = run(m, sql, values);
    va_end(values);
    if (found) return found;
    messenger_run(m, 100);
  }
  fail("%s waited in vain for %s", m->handle, what);
}

static void keep(struct messenger *m, const char *name, const char *value) {
  free(query(m, "INSERT OR REPLACE INTO state VALUES (?, ?)", name, value, NULL));
}

static void copy(char *to, size_t room, const char *from) { snprintf(to, room, "%s", from); }

/* Hearing. */

static void put(struct messenger *m, const Vencejo__Chat__V1__Message *message) {
  const char *end = strstr(message->name, "/messages/"), *text = "", *attachment = "";
  if (!end) return;
  char chat[64], sequence[32], reactions[256] = "";
  snprintf(chat, sizeof chat, "%.*s", (int)(end - message->name), message->name);
  snprintf(sequence, sizeof sequence, "%lld", (long long)message->sequence);
  for (size_t i = 0; i < message->n_reactions; i++)
    strncat(reactions, message->reactions[i]->emoji, sizeof reactions - strlen(reactions) - 1);
  const Vencejo__Chat__V1__MessageContent *content = message->content;
  if (content && content->kind_case == VENCEJO__CHAT__V1__MESSAGE_CONTENT__KIND_TEXT) {
    text = content->text->text;
  } else if (content && content->kind_case == VENCEJO__CHAT__V1__MESSAGE_CONTENT__KIND_MEDIA) {
    text = content->media->caption;
    if (content->media->n_attachments) attachment = content->media->attachments[0];
  }
  free(query(m, "INSERT OR REPLACE INTO message VALUES (?, ?, ?, ?, ?, ?, ?, ?)", chat, sequence,
             message->name, message->sender, text, reactions, attachment, message->reply_to, NULL));
}

static void erase(struct messenger *m, const Vencejo__Chat__V1__MessagesDeletedEvent *deleted) {
  for (size_t i = 0; i < deleted->n_ranges; i++) {
    char first[32], last[32];
    snprintf(first, sizeof first, "%lld", (long long)deleted->ranges[i]->first_sequence);
    snprintf(last, sizeof last, "%lld", (long long)deleted->ranges[i]->last_sequence);
    const char *sql =
        deleted->scope == VENCEJO__CHAT__V1__DELETE_SCOPE__DELETE_SCOPE_FOR_EVERYONE
            ? "UPDATE message SET text = '', attachment = '', reaction = '' "
              "WHERE chat = ? AND sequence BETWEEN ? AND ?"
            : "DELETE FROM message WHERE chat = ? AND sequence BETWEEN ? AND ?";
    free(query(m, sql, deleted->chat, first, last, NULL));
  }
}

/* Each event so that twice is as good as once; what we do not know we ignore. */
static void apply(struct messenger *m, const Vencejo__Chat__V1__SubscribeResponse *frame) {
  switch (frame->event_case) {
    case VENCEJO__CHAT__V1__SUBSCRIBE_RESPONSE__EVENT_RESET:
      /* The snapshot behind it replaces everything. The outbox stays. */
      m->resets++;
      free(query(m, "DELETE FROM message", NULL));
      free(query(m, "DELETE FROM marker", NULL));
      break;
    case VENCEJO__CHAT__V1__SUBSCRIBE_RESPONSE__EVENT_CHAT_SNAPSHOT:
      for (size_t i = 0; i < frame->chat_snapshot->n_messages; i++)
        put(m, frame->chat_snapshot->messages[i]);
      break;
    case VENCEJO__CHAT__V1__SUBSCRIBE_RESPONSE__EVENT_MESSAGE_CREATED:
      put(m, frame->message_created->message);
      break;
    case VENCEJO__CHAT__V1__SUBSCRIBE_RESPONSE__EVENT_MESSAGE_UPDATED:
      put(m, frame->message_updated->message);
      break;
    case VENCEJO__CHAT__V1__SUBSCRIBE_RESPONSE__EVENT_MESSAGES_DELETED:
      erase(m, frame->messages_deleted);
      break;
    case VENCEJO__CHAT__V1__SUBSCRIBE_RESPONSE__EVENT_REACTION_CHANGED: {
      char reactions[256] = "";
      for (size_t i = 0; i < frame->reaction_changed->n_reactions; i++)
        strncat(reactions, frame->reaction_changed->reactions[i]->emoji,
                sizeof reactions - strlen(reactions) - 1);
      free(query(m, "UPDATE message SET reaction = ? WHERE name = ?", reactions,
                 frame->reaction_changed->message, NULL));
      break;
    }
    case VENCEJO__CHAT__V1__SUBSCRIBE_RESPONSE__EVENT_RECEIPT_MOVED: {
      char read[32];
      snprintf(read, sizeof read, "%lld", (long long)frame->receipt_moved->read_sequence);
      free(query(m,
                 "INSERT INTO marker VALUES (?, ?, ?) "
                 "ON CONFLICT DO UPDATE SET read = max(read, excluded.read)",
                 frame->receipt_moved->chat, frame->receipt_moved->user, read, NULL));
      break;
    }
    case VENCEJO__CHAT__V1__SUBSCRIBE_RESPONSE__EVENT_CHAT_REMOVED:
      free(query(m, "DELETE FROM message WHERE chat = ?", frame->chat_removed->chat, NULL));
      break;
    case VENCEJO__CHAT__V1__SUBSCRIBE_RESPONSE__EVENT_CAUGHT_UP:
      m->caught_up = 1;
      break;
    default:
      break;
  }
}

static void forget_pending(struct messenger *m) {
  for (size_t i = 0; i < m->pending_count; i++)
    vencejo__chat__v1__subscribe_response__free_unpacked(m->pending[i], NULL);
  m->pending_count = 0;
}

static void on_frame(void *context, const uint8_t *bytes, size_t length) {
  struct messenger *m = context;
  Vencejo__Chat__V1__SubscribeResponse *frame =
      vencejo__chat__v1__subscribe_response__unpack(NULL, length, bytes);
  if (!frame) fail("a frame is no SubscribeResponse");
  m->heard_at = now_milliseconds();
  m->pause = FIRST_PAUSE;
  if (frame->event_case == VENCEJO__CHAT__V1__SUBSCRIBE_RESPONSE__EVENT_TYPING) {
    copy(m->typing_chat, sizeof m->typing_chat, frame->typing->chat);
    copy(m->typing_user, sizeof m->typing_user, frame->typing->user);
  } else if (frame->event_case == VENCEJO__CHAT__V1__SUBSCRIBE_RESPONSE__EVENT_CLOSING &&
             frame->closing->retry_delay) {
    m->connect_at = m->heard_at + frame->closing->retry_delay->seconds * 1000;
  }
  /* Frames up to a token are one change: all of them and the token go into one transaction, so
   * neither a gap nor half a change can come of it. What comes behind the last token, before a
   * stream breaks, comes again. */
  m->pending = realloc(m->pending, (m->pending_count + 1) * sizeof *m->pending);
  m->pending[m->pending_count++] = frame;
  if (!*frame->resume_token) return;
  free(query(m, "BEGIN IMMEDIATE", NULL));
  for (size_t i = 0; i < m->pending_count; i++) apply(m, m->pending[i]);
  keep(m, "resume_token", frame->resume_token);
  free(query(m, "COMMIT", NULL));
  forget_pending(m);
}

static void subscribe(struct messenger *m) {
  Vencejo__Chat__V1__SnapshotOptions snapshot = VENCEJO__CHAT__V1__SNAPSHOT_OPTIONS__INIT;
  snapshot.chat_limit = snapshot.messages_per_chat = 100;
  Vencejo__Chat__V1__SubscribeRequest request = VENCEJO__CHAT__V1__SUBSCRIBE_REQUEST__INIT;
  char *token = query(m, "SELECT value FROM state WHERE name = 'resume_token'", NULL);
  request.resume_token = token ? token : "";
  request.snapshot = &snapshot;
  request.include_ephemeral = request.auto_mark_delivered = 1;
  uint8_t bytes[1024];
  if (vencejo__chat__v1__subscribe_request__get_packed_size(&request) > sizeof bytes)
    fail("a token of that size?");
  size_t length = vencejo__chat__v1__subscribe_request__pack(&request, bytes);
  m->stream = grpc_start(m->connection, SERVICE("Subscribe"), m->access_token, on_frame, m);
  grpc_send(m->stream, bytes, length);
  grpc_send_no_more(m->stream);
  m->heard_at = now_milliseconds();
  free(token);
}

/* The connection, and its end. */

static void hang_up(struct messenger *m) {
  grpc_disconnect(m->connection);
  m->connection = NULL;
}

/* The next attempt comes after a random time up to half a second, doubled with each failure, up to
 * 30 s. */
static void back_off(struct messenger *m) {
  unsigned random;
  if (getrandom(&random, sizeof random, 0) != sizeof random) random = 0;
  int64_t next = now_milliseconds() + random % (unsigned)m->pause;
  if (next > m->connect_at) m->connect_at = next;
  m->pause = m->pause * 2 > LONGEST_PAUSE ? LONGEST_PAUSE : m->pause * 2;
}

static int refresh(struct messenger *m);
static int read_reason(struct messenger *m, struct grpc_call *call);

static void connect_if_due(struct messenger *m, int milliseconds) {
  int64_t early = m->connect_at - now_milliseconds();
  if (early > 0) {
    if (early > milliseconds) early = milliseconds;
    struct timespec rest = {early / 1000, early % 1000 * 1000000};
    // What is left of the back-off.
    nanosleep(&rest, NULL);
    return;
  }
  m->connection = grpc_connect(m->host, m->port);
  if (!m->connection) back_off(m);
}

void messenger_run(struct messenger *m, int milliseconds) {
  if (!m->connection) connect_if_due(m, milliseconds);
  if (!m->connection) return;
  if (!m->stream && *m->access_token && now_milliseconds() >= m->connect_at) subscribe(m);
  int lives = grpc_run(m->connection, milliseconds);
  if (m->stream && now_milliseconds() - m->heard_at > SILENCE) lives = 0;
  if (!lives) {
    hang_up(m);
    back_off(m);
  }
  if (m->stream && m->stream->done) {
    int status = read_reason(m, m->stream);
    grpc_free(m->stream);
    m->stream = NULL;
    m->caught_up = 0;
    forget_pending(m);
    if (status == GRPC_UNAUTHENTICATED && !refresh(m)) fail("signed out: %s", m->reason);
    if (lives) back_off(m);
  }
}

/* Calls. */

void on_answer(void *context, const uint8_t *bytes, size_t length) {
  struct answer *answer = context;
  if (!answer->message)
    answer->message = protobuf_c_message_unpack(answer->type, NULL, length, bytes);
}

/* The status of a call that is over, and why it is so from its ErrorInfo. */
static int read_reason(struct messenger *m, struct grpc_call *call) {
  *m->reason = 0;
  Google__Rpc__Status *status =
      call->details ? google__rpc__status__unpack(NULL, call->details_length, call->details) : NULL;
  for (size_t i = 0; status && i < status->n_details; i++) {
    Google__Protobuf__Any *detail = status->details[i];
    if (strcmp(detail->type_url, "type.googleapis.com/google.rpc.ErrorInfo")) continue;
    Google__Rpc__ErrorInfo *info =
        google__rpc__error_info__unpack(NULL, detail->value.len, detail->value.data);
    if (info) copy(m->reason, sizeof m->reason, info->reason);
    if (info) google__rpc__error_info__free_unpacked(info, NULL);
  }
  if (status) google__rpc__status__free_unpacked(status, NULL);
  return call->status;
}

int messenger_finish(struct messenger *m, struct grpc_call *call) {
  int64_t end = now_milliseconds() + CALL_LIMIT;
  while (!call->done && now_milliseconds() < end) messenger_run(m, 100);
  int status = call->done ? read_reason(m, call) : GRPC_DEADLINE_EXCEEDED;
  grpc_free(call);
  return status;
}

static int call(struct messenger *m, const ProtobufCServiceDescriptor *service, const char *method,
                const char *bearer, const void *request, void *response) {
  const ProtobufCMethodDescriptor *known =
      protobuf_c_service_descriptor_get_method_by_name(service, method);
  char path[128];
  snprintf(path, sizeof path, "/%s/%s", service->name, method);
  struct answer answer = {.type = known->output};
  uint8_t *bytes = malloc(protobuf_c_message_get_packed_size(request));
  size_t length = protobuf_c_message_pack(request, bytes);
  if (!m->connection) messenger_run(m, 1000);
  struct grpc_call *made = grpc_start(m->connection, path, bearer, on_answer, &answer);
  grpc_send(made, bytes, length);
  grpc_send_no_more(made);
  free(bytes);
  int status = messenger_finish(m, made);
  if (status == GRPC_OK && !answer.message) status = GRPC_UNKNOWN;
  if (status == GRPC_OK && response)
    *(ProtobufCMessage **)response = answer.message;
  else if (answer.message)
    protobuf_c_message_free_unpacked(answer.message, NULL);
  return status;
}

int messenger_call(struct messenger *m, const char *method, const void *request, void *response) {
  const ProtobufCServiceDescriptor *service = &vencejo__chat__v1__chat_service__descriptor;
  int status = call(m, service, method, m->access_token, request, response);
  if (status != GRPC_UNAUTHENTICATED || strcmp(m->reason, "ACCESS_TOKEN_EXPIRED") || !refresh(m))
    return status;
  return call(m, service, method, m->access_token, request, response);
}

/* The session. */

/* The refresh token is for one use: its successor is kept at once. */
static void take(struct messenger *m, const char *user, const Vencejo__Auth__V1__TokenPair *tokens) {
  if (user) keep(m, "user", user), copy(m->user, sizeof m->user, user);
  keep(m, "refresh_token", tokens->refresh_token);
  copy(m->access_token, sizeof m->access_token, tokens->access_token);
}

static const ProtobufCServiceDescriptor *auth = &vencejo__auth__v1__auth_service__descriptor;

static int refresh(struct messenger *m) {
  char *token = query(m, "SELECT value FROM state WHERE name = 'refresh_token'", NULL);
  if (!token) return 0;
  Vencejo__Auth__V1__RefreshSessionRequest request = VENCEJO__AUTH__V1__REFRESH_SESSION_REQUEST__INIT;
  request.refresh_token = token;
  Vencejo__Auth__V1__RefreshSessionResponse *response;
  *m->access_token = 0;
  int status = call(m, auth, "RefreshSession", NULL, &request, &response);
  free(token);
  if (status) return 0;
  take(m, NULL, response->tokens);
  vencejo__auth__v1__refresh_session_response__free_unpacked(response, NULL);
  return 1;
}

void messenger_sign_in(struct messenger *m) {
  char *user = query(m, "SELECT value FROM state WHERE name = 'user'", NULL);
  if (user) copy(m->user, sizeof m->user, user);
  free(user);
  if (refresh(m)) return;
  Vencejo__Auth__V1__PasswordCredential credential = VENCEJO__AUTH__V1__PASSWORD_CREDENTIAL__INIT;
  credential.identifier = (char *)m->handle;
  credential.password = (char *)m->password;
  Vencejo__Auth__V1__SignInRequest request = VENCEJO__AUTH__V1__SIGN_IN_REQUEST__INIT;
  request.credential_case = VENCEJO__AUTH__V1__SIGN_IN_REQUEST__CREDENTIAL_PASSWORD;
  request.password = &credential;
  request.device_label = "example in C";
  Vencejo__Auth__V1__SignInResponse *response;
  int status = call(m, auth, "SignIn", NULL, &request, &response);
  if (status == GRPC_OK) {
    take(m, response->user->name, response->tokens);
    vencejo__auth__v1__sign_in_response__free_unpacked(response, NULL);
    return;
  }
  if (strcmp(m->reason, "BAD_CREDENTIAL")) fail("sign in: %d %s", status, m->reason);
  char id[37];
  new_id(id);
  Vencejo__Auth__V1__SignUpRequest account = VENCEJO__AUTH__V1__SIGN_UP_REQUEST__INIT;
  account.request_id = id;
  account.handle = account.display_name = (char *)m->handle;
  account.password = (char *)m->password;
  Vencejo__Auth__V1__SignUpResponse *made;
  status = call(m, auth, "SignUp", NULL, &account, &made);
  if (status) fail("sign up: %d %s", status, m->reason);
  take(m, made->user->name, made->tokens);
  vencejo__auth__v1__sign_up_response__free_unpacked(made, NULL);
}

void messenger_open(struct messenger *m, const char *address, const char *folder,
                    const char *handle, const char *password) {
  memset(m, 0, sizeof *m);
  char *host = strdup(address), *colon = strrchr(host, ':');
  if (!colon) fail("an address is HOST:PORT");
  *colon = 0;
  m->host = host, m->port = colon + 1, m->handle = handle, m->password = password;
  m->pause = FIRST_PAUSE;
  char path[4096];
  snprintf(path, sizeof path, "%s/messenger.sqlite", folder);
  if (sqlite3_open(path, &m->cache) != SQLITE_OK) fail("cannot open %s", path);
  char *failure = NULL;
  sqlite3_exec(m->cache,
               "PRAGMA journal_mode = WAL;"
               "CREATE TABLE IF NOT EXISTS state(name TEXT PRIMARY KEY, value TEXT);"
               "CREATE TABLE IF NOT EXISTS message(chat TEXT, sequence INTEGER, name TEXT,"
               " sender TEXT, text TEXT, reaction TEXT, attachment TEXT, reply_to TEXT,"
               " PRIMARY KEY(chat, sequence));"
               "CREATE TABLE IF NOT EXISTS marker(chat TEXT, user TEXT, read INTEGER,"
               " PRIMARY KEY(chat, user));"
               "CREATE TABLE IF NOT EXISTS outbox(id TEXT PRIMARY KEY, chat TEXT, text TEXT,"
               " reply_to TEXT, attachment TEXT);",
               NULL, NULL, &failure);
  if (failure) fail("%s", failure);
}

void messenger_close(struct messenger *m) {
  grpc_free(m->stream);
  if (m->connection) grpc_run(m->connection, 0);
  hang_up(m);
  forget_pending(m);
  free(m->pending);
  free((char *)m->host);
  sqlite3_close(m->cache);
}

/* Sending. */

static int send_one(struct messenger *m, char *id) {
  char *chat = query(m, "SELECT chat FROM outbox WHERE id = ?", id, NULL);
  char *text = query(m, "SELECT text FROM outbox WHERE id = ?", id, NULL);
  char *reply = query(m, "SELECT reply_to FROM outbox WHERE id = ?", id, NULL);
  char *attachment = query(m, "SELECT attachment FROM outbox WHERE id = ?", id, NULL);
  Vencejo__Chat__V1__TextContent plain = VENCEJO__CHAT__V1__TEXT_CONTENT__INIT;
  Vencejo__Chat__V1__MediaContent media = VENCEJO__CHAT__V1__MEDIA_CONTENT__INIT;
  Vencejo__Chat__V1__MessageContent content = VENCEJO__CHAT__V1__MESSAGE_CONTENT__INIT;
  if (*attachment) {
    media.n_attachments = 1;
    media.attachments = &attachment;
    media.caption = text;
    content.kind_case = VENCEJO__CHAT__V1__MESSAGE_CONTENT__KIND_MEDIA;
    content.media = &media;
  } else {
    plain.text = text;
    content.kind_case = VENCEJO__CHAT__V1__MESSAGE_CONTENT__KIND_TEXT;
    content.text = &plain;
  }
  Vencejo__Chat__V1__SendMessageRequest request = VENCEJO__CHAT__V1__SEND_MESSAGE_REQUEST__INIT;
  request.parent = chat;
  /* Makes a repeat harmless when only the answer was lost. */
  request.message_id = id;
  request.reply_to = reply;
  request.content = &content;
  int status = messenger_call(m, "SendMessage", &request, NULL);
  free(chat), free(text), free(reply), free(attachment);
  return status;
}

void messenger_send(struct messenger *m, const char *chat, const char *text, const char *reply_to,
                    const char *attachment) {
  char fresh[37], *id;
  new_id(fresh);
  free(query(m, "INSERT INTO outbox VALUES (?, ?, ?, ?, ?)", fresh, chat, text, reply_to,
             attachment, NULL));
  while ((id = query(m, "SELECT id FROM outbox ORDER BY id LIMIT 1", NULL))) {
    int status = send_one(m, id);
    if (status == GRPC_OK) free(query(m, "DELETE FROM outbox WHERE id = ?", id, NULL));
    free(id);
    /* Only what may go away is worth another attempt; a connection that broke backs off by
     * itself. */
    if (status == GRPC_RESOURCE_EXHAUSTED)
      messenger_run(m, 1000);
    else if (status != GRPC_OK && status != GRPC_UNAVAILABLE && status != GRPC_UNKNOWN &&
             status != GRPC_DEADLINE_EXCEEDED)
      fail("send: %d %s", status, m->reason);
  }
}
