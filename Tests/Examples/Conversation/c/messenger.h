/* A client of Vencejo's messenger: a session, an outbox, a cache that misses nothing, files.
 *
 * One thread does it all: whatever waits lets the stream go on meanwhile. What must outlive the
 * process is in one SQLite file. Copy this into your program and throw away what you do not need;
 * conversation.c shows it at work. */
#ifndef MESSENGER_H
#define MESSENGER_H

#include <sqlite3.h>

#include "grpc.h"
#include "vencejo/auth/v1/auth.pb-c.h"
#include "vencejo/chat/v1/chat.pb-c.h"

struct messenger {
  const char *host, *port, *handle, *password;
  sqlite3 *cache;
  struct grpc_connection *connection;
  char user[64], access_token[128];
  /* Why the last call failed, in a word that programs may rely on. */
  char reason[64];
  /* The stream, and its frames since the last token. */
  struct grpc_call *stream;
  Vencejo__Chat__V1__SubscribeResponse **pending;
  size_t pending_count;
  int64_t heard_at, connect_at;
  int pause;
  /* Not kept: what is not in the log either. */
  char typing_chat[64], typing_user[64];
  int caught_up, resets;
};

/* Whatever goes wrong for good ends the program. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

void messenger_open(struct messenger *m, const char *address, const char *folder,
                    const char *handle, const char *password);
void messenger_close(struct messenger *m);
/* By the refresh token of last time or by password; makes the account when there is none. */
void messenger_sign_in(struct messenger *m);

/* A unary call in the user's name: 0 or gRPC's code. The response is the caller's to free with
 * protobuf_c_message_free_unpacked; NULL for `response` throws it away. */
int messenger_call(struct messenger *m, const char *method, const void *request, void *response);

/* For calls that stream: the one response of a call, and the wait for its end, at most as long as
 * a call may take; 0 or gRPC's code, and the call is freed. */
struct answer {
  const ProtobufCMessageDescriptor *type;
  ProtobufCMessage *message;
};
void on_answer(void *answer, const uint8_t *bytes, size_t length);
int messenger_finish(struct messenger *m, struct grpc_call *call);

/* Puts a message into the outbox and empties it: each is sent once, though it may take many
 * attempts. `reply_to` and `attachment` may be "". */
void messenger_send(struct messenger *m, const char *chat, const char *text, const char *reply_to,
                    const char *attachment);

/* Runs a statement with text values, ended by NULL; answers the first column of its first row, for
 * the caller to free, or NULL when there is none. */
char *query(struct messenger *m, const char *sql, ...) __attribute__((sentinel));
/* Waits until a query has a row, and answers as query() does. */
char *await(struct messenger *m, const char *what, const char *sql, ...)
    __attribute__((sentinel));
/* Lets the network go on for a while; connects and subscribes where needed. */
void messenger_run(struct messenger *m, int milliseconds);
int64_t now_milliseconds(void);

/* Uploads a file, or goes on where an upload with this id broke; the attachment's name goes to
 * `name`. At the offset `until`, when it is not negative, it breaks, as a network would; false
 * then. */
int messenger_upload(struct messenger *m, const uint8_t *data, size_t length, const char *id,
                     long until, char name[64]);
/* A file, or a range of it, for the caller to free. The whole is checked against its digest. */
uint8_t *messenger_download(struct messenger *m, const char *name, int64_t offset, int64_t limit,
                            size_t *length);

void new_id(char id[37]);
/* SHA-256. */
void digest(const uint8_t *data, size_t length, uint8_t made[32]);

#endif
