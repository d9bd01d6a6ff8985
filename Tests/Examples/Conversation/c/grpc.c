#define _GNU_SOURCE
#include "grpc.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct grpc_connection {
  int socket;
  nghttp2_session *session;
  struct grpc_call *calls;
  char authority[128];
};

static void end(struct grpc_call *call, int status) {
  if (call->done) return;
  call->done = 1;
  if (call->status < 0) call->status = status;
}

/* Messages in what has come so far; what is left of one waits for its rest. */
static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes,
                   size_t length, void *user) {
  (void)flags, (void)user;
  struct grpc_call *call = nghttp2_session_get_stream_user_data(session, stream);
  if (!call) return 0;
  call->in = realloc(call->in, call->in_length + length);
  memcpy(call->in + call->in_length, bytes, length);
  call->in_length += length;
  size_t at = 0;
  while (call->in_length - at >= 5) {
    const uint8_t *head = call->in + at;
    size_t size = (size_t)head[1] << 24 | head[2] << 16 | head[3] << 8 | head[4];
    if (call->in_length - at - 5 < size) break;
    call->on_message(call->context, head + 5, size);
    at += 5 + size;
  }
  memmove(call->in, call->in + at, call->in_length - at);
  call->in_length -= at;
  return 0;
}

/* Base64 without padding, as metadata whose names end in -bin has it. */
static size_t decode(const uint8_t *text, size_t length, uint8_t *bytes) {
  size_t made = 0;
  uint32_t bits = 0;
  int count = 0;
  for (size_t i = 0; i < length && text[i] != '='; i++) {
    uint8_t c = text[i];
    int six = c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26
            : c >= '0' && c <= '9' ? c - '0' + 52 : c == '+' ? 62 : 63;
    bits = bits << 6 | (uint32_t)six;
    count += 6;
    if (count >= 8) bytes[made++] = (uint8_t)(bits >> (count -= 8));
  }
  return made;
}

static int on_field(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                    size_t name_length, const uint8_t *value, size_t length, uint8_t flags,
                    void *user) {
  (void)flags, (void)user;
  struct grpc_call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
  if (!call) return 0;
  if (name_length == 11 && !memcmp(name, "grpc-status", 11)) {
    call->status = atoi((const char *)value);
  } else if (name_length == 23 && !memcmp(name, "grpc-status-details-bin", 23)) {
    call->details = malloc(length);
    call->details_length = decode(value, length, call->details);
  }
  return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *user) {
  (void)user;
  struct grpc_call *call = nghttp2_session_get_stream_user_data(session, stream);
  /* A stream that the server refused was not looked at: it may be tried again. */
  if (call) end(call, code == NGHTTP2_REFUSED_STREAM ? GRPC_UNAVAILABLE : GRPC_UNKNOWN);
  return 0;
}

static ssize_t on_read(nghttp2_session *session, int32_t stream, uint8_t *buffer, size_t room,
                       uint32_t *flags, nghttp2_data_source *source, void *user) {
  (void)session, (void)stream, (void)user;
  struct grpc_call *call = source->ptr;
  size_t left = call->out_length - call->out_sent;
  if (left == 0 && !call->sends_no_more) return NGHTTP2_ERR_DEFERRED;
  if (left > room) left = room;
  memcpy(buffer, call->out + call->out_sent, left);
  call->out_sent += left;
  if (call->out_sent == call->out_length) {
    call->out_sent = call->out_length = 0;
    if (call->sends_no_more) *flags |= NGHTTP2_DATA_FLAG_EOF;
  }
  return (ssize_t)left;
}

struct grpc_connection *grpc_connect(const char *host, const char *port) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
  if (getaddrinfo(host, port, &hints, &found)) return NULL;
  int fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, 0), one = 1;
  int failed = fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  if (failed) {
    if (fd >= 0) close(fd);
    return NULL;
  }
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  struct grpc_connection *connection = calloc(1, sizeof *connection);
  connection->socket = fd;
  snprintf(connection->authority, sizeof connection->authority, "%s:%s", host, port);
  nghttp2_session_callbacks *callbacks;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, on_field);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
  nghttp2_session_client_new(&connection->session, callbacks, connection);
  nghttp2_session_callbacks_del(callbacks);
  nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, NULL, 0);
  return connection;
}

void grpc_disconnect(struct grpc_connection *connection) {
  if (!connection) return;
  while (connection->calls) {
    struct grpc_call *call = connection->calls;
    connection->calls = call->next;
    call->connection = NULL;
    end(call, GRPC_UNAVAILABLE);
  }
  nghttp2_session_del(connection->session);
  close(connection->socket);
  free(connection);
}

static int flush(struct grpc_connection *connection) {
  const uint8_t *bytes;
  ssize_t length;
  while ((length = nghttp2_session_mem_send(connection->session, &bytes)) > 0)
    while (length > 0) {
      ssize_t sent = send(connection->socket, bytes, (size_t)length, MSG_NOSIGNAL);
      if (sent < 0) return 0;
      bytes += sent, length -= sent;
    }
  return length == 0;
}

int grpc_run(struct grpc_connection *connection, int milliseconds) {
  if (!flush(connection)) return 0;
  struct pollfd wanted = {.fd = connection->socket, .events = POLLIN};
  if (poll(&wanted, 1, milliseconds) > 0) {
    uint8_t bytes[16384];
    ssize_t length = recv(connection->socket, bytes, sizeof bytes, 0);
    if (length <= 0) return 0;
    if (nghttp2_session_mem_recv(connection->session, bytes, (size_t)length) < 0) return 0;
    if (!flush(connection)) return 0;
  }
  return nghttp2_session_want_read(connection->session);
}

#define FIELD(name, value) \
  {(uint8_t *)(name), (uint8_t *)(value), strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE}

struct grpc_call *grpc_start(struct grpc_connection *connection, const char *path,
                             const char *bearer,
                             void (*on_message)(void *, const uint8_t *, size_t), void *context) {
  struct grpc_call *call = calloc(1, sizeof *call);
  call->on_message = on_message;
  call->context = context;
  call->status = -1;
  if (!connection) {
    end(call, GRPC_UNAVAILABLE);
    return call;
  }
  call->connection = connection;
  call->next = connection->calls;
  connection->calls = call;
  char authorization[256];
  snprintf(authorization, sizeof authorization, "Bearer %s", bearer ? bearer : "");
  nghttp2_nv fields[] = {
      FIELD(":method", "POST"), FIELD(":scheme", "http"), FIELD(":path", path),
      FIELD(":authority", connection->authority), FIELD("te", "trailers"),
      FIELD("content-type", "application/grpc"), FIELD("authorization", authorization)};
  nghttp2_data_provider body = {.source.ptr = call, .read_callback = on_read};
  call->stream = nghttp2_submit_request(connection->session, NULL, fields, bearer ? 7 : 6, &body,
                                        call);
  if (call->stream < 0) end(call, GRPC_UNAVAILABLE);
  return call;
}

static void resume(struct grpc_call *call) {
  if (call->connection && !call->done)
    nghttp2_session_resume_data(call->connection->session, call->stream);
}

void grpc_send(struct grpc_call *call, const uint8_t *bytes, size_t length) {
  call->out = realloc(call->out, call->out_length + 5 + length);
  uint8_t *head = call->out + call->out_length;
  head[0] = 0;
  for (int i = 0; i < 4; i++) head[1 + i] = (uint8_t)(length >> (24 - 8 * i));
  memcpy(head + 5, bytes, length);
  call->out_length += 5 + length;
  resume(call);
}

void grpc_send_no_more(struct grpc_call *call) {
  call->sends_no_more = 1;
  resume(call);
}

void grpc_free(struct grpc_call *call) {
  if (!call) return;
  if (call->connection) {
    if (!call->done)
      nghttp2_submit_rst_stream(call->connection->session, NGHTTP2_FLAG_NONE, call->stream,
                                NGHTTP2_CANCEL);
    nghttp2_session_set_stream_user_data(call->connection->session, call->stream, NULL);
    struct grpc_call **place = &call->connection->calls;
    while (*place && *place != call) place = &(*place)->next;
    if (*place) *place = call->next;
  }
  free(call->details);
  free(call->in);
  free(call->out);
  free(call);
}
