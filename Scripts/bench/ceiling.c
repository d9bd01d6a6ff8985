/* The least a gRPC-shaped server on nghttp2 and epoll costs on this machine: no
 * handler, no protobuf, no tasks, one loop. Vencejo's figures are multiples of it.
 *
 *   cc -O2 -o ceiling ceiling.c -lnghttp2
 *   ./ceiling PORT [PATH]
 *
 * A POST to PATH (any path when left out) is answered with its own body, any other
 * with grpc-status 12. Plain HTTP/2 with prior knowledge, on 127.0.0.1 only.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { OUT_LIMIT = 256 << 10, OUT_SLACK = 32 << 10 };

struct call {
  struct call *prev, *next;
  uint8_t *body;
  size_t length, capacity, sent;
  int known;
};

struct peer {
  int fd, asked;
  nghttp2_session *session;
  struct call *calls;
  uint8_t *kept; /* what the kernel did not take */
  size_t kept_length, kept_offset;
};

static const char *wanted;
static int poller;
/* One loop, so one connection at a time: these two serve them all. */
static uint8_t in[64 << 10], out[OUT_LIMIT + OUT_SLACK];
static size_t out_length;

#define FIELD(name, value)                                      \
  {(uint8_t *)name, (uint8_t *)value, sizeof name - 1, sizeof value - 1, \
   NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE}
static const nghttp2_nv ok_head[] = {FIELD(":status", "200"), FIELD("content-type", "application/grpc")};
static const nghttp2_nv ok_tail[] = {FIELD("grpc-status", "0")};
static const nghttp2_nv no_method[] = {FIELD(":status", "200"), FIELD("content-type", "application/grpc"),
                                       FIELD("grpc-status", "12")};

static void *need(void *memory) {
  if (!memory) abort();
  return memory;
}

static ssize_t on_send(nghttp2_session *h, const uint8_t *bytes, size_t n, int flags, void *user) {
  if (out_length >= OUT_LIMIT) return NGHTTP2_ERR_WOULDBLOCK;
  if (n > sizeof out - out_length) n = sizeof out - out_length;
  memcpy(out + out_length, bytes, n);
  out_length += n;
  return (ssize_t)n;
}

static ssize_t on_read(nghttp2_session *h, int32_t id, uint8_t *buffer, size_t room, uint32_t *flags,
                       nghttp2_data_source *source, void *user) {
  struct call *call = source->ptr;
  size_t left = call->length - call->sent;
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (left > room) return (ssize_t)room;
  *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
  nghttp2_submit_trailer(h, id, ok_tail, 1);
  return (ssize_t)left;
}

static int on_send_data(nghttp2_session *h, nghttp2_frame *frame, const uint8_t *head, size_t n,
                        nghttp2_data_source *source, void *user) {
  struct call *call = source->ptr;
  if (out_length >= OUT_LIMIT || n + 9 > OUT_SLACK) return NGHTTP2_ERR_WOULDBLOCK;
  memcpy(out + out_length, head, 9);
  memcpy(out + out_length + 9, call->body + call->sent, n);
  out_length += 9 + n;
  call->sent += n;
  return 0;
}

static int on_begin(nghttp2_session *h, const nghttp2_frame *frame, void *user) {
  struct peer *peer = user;
  if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  struct call *call = need(calloc(1, sizeof *call));
  call->known = !wanted;
  call->next = peer->calls;
  if (call->next) call->next->prev = call;
  peer->calls = call;
  return nghttp2_session_set_stream_user_data(h, frame->hd.stream_id, call);
}

static int on_field(nghttp2_session *h, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
                    const uint8_t *value, size_t value_length, uint8_t flags, void *user) {
  if (!wanted || name_length != 5 || memcmp(name, ":path", 5)) return 0;
  struct call *call = nghttp2_session_get_stream_user_data(h, frame->hd.stream_id);
  if (call) call->known = value_length == strlen(wanted) && !memcmp(value, wanted, value_length);
  return 0;
}

static int on_data(nghttp2_session *h, uint8_t flags, int32_t id, const uint8_t *bytes, size_t n, void *user) {
  struct call *call = nghttp2_session_get_stream_user_data(h, id);
  if (!call) return 0;
  if (call->length + n > call->capacity) {
    call->capacity = call->length + n;
    /* gRPC's prefix tells how much will come. */
    if (!call->length && n >= 5) {
      size_t told = 5 + ((size_t)bytes[2] << 16 | bytes[3] << 8 | bytes[4]);
      if (bytes[1] == 0 && told > call->capacity) call->capacity = told;
    }
    call->body = need(realloc(call->body, call->capacity));
  }
  memcpy(call->body + call->length, bytes, n);
  call->length += n;
  return 0;
}

static int on_frame(nghttp2_session *h, const nghttp2_frame *frame, void *user) {
  int type = frame->hd.type;
  if ((type != NGHTTP2_DATA && type != NGHTTP2_HEADERS) || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) return 0;
  struct call *call = nghttp2_session_get_stream_user_data(h, frame->hd.stream_id);
  if (!call) return 0;
  nghttp2_data_provider body = {.source.ptr = call, .read_callback = on_read};
  if (call->known) return nghttp2_submit_response(h, frame->hd.stream_id, ok_head, 2, &body);
  return nghttp2_submit_response(h, frame->hd.stream_id, no_method, 3, NULL);
}

static void drop(struct peer *peer, struct call *call) {
  if (call->prev) call->prev->next = call->next;
  else peer->calls = call->next;
  if (call->next) call->next->prev = call->prev;
  free(call->body);
  free(call);
}

static int on_close(nghttp2_session *h, int32_t id, uint32_t code, void *user) {
  struct call *call = nghttp2_session_get_stream_user_data(h, id);
  if (call) drop(user, call);
  return 0;
}

static void watch(struct peer *peer, int operation, int events) {
  if (peer->asked == events) return;
  peer->asked = events;
  struct epoll_event event = {.events = (uint32_t)events, .data.ptr = peer};
  epoll_ctl(poller, operation, peer->fd, &event);
}

/* Bytes the kernel took, or -1 when the peer is gone. */
static ssize_t put(struct peer *peer, const uint8_t *bytes, size_t n) {
  ssize_t sent = send(peer->fd, bytes, n, MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN ? 0 : -1;
  return sent;
}

/* One write for all there is to say; false when the connection is over. */
static int flush(struct peer *peer) {
  for (;;) {
    if (peer->kept) {
      ssize_t sent = put(peer, peer->kept + peer->kept_offset, peer->kept_length - peer->kept_offset);
      if (sent < 0) return 0;
      peer->kept_offset += (size_t)sent;
      if (peer->kept_offset < peer->kept_length) return 1;
      free(peer->kept);
      peer->kept = NULL;
      watch(peer, EPOLL_CTL_MOD, EPOLLIN);
    }
    out_length = 0;
    if (nghttp2_session_send(peer->session)) return 0;
    if (!out_length) break;
    ssize_t sent = put(peer, out, out_length);
    if (sent < 0) return 0;
    if ((size_t)sent < out_length) {
      peer->kept_length = out_length - (size_t)sent;
      peer->kept_offset = 0;
      peer->kept = need(malloc(peer->kept_length));
      memcpy(peer->kept, out + sent, peer->kept_length);
      watch(peer, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
      return 1;
    }
    if (!nghttp2_session_want_write(peer->session)) break;
  }
  return nghttp2_session_want_read(peer->session) || nghttp2_session_want_write(peer->session);
}

static void end(struct peer *peer) {
  nghttp2_session_del(peer->session);
  while (peer->calls) drop(peer, peer->calls);
  close(peer->fd);
  free(peer->kept);
  free(peer);
}

static int take(struct peer *peer) {
  ssize_t n = recv(peer->fd, in, sizeof in, 0);
  if (n < 0) return errno == EAGAIN;
  return n && nghttp2_session_mem_recv(peer->session, in, (size_t)n) == n;
}

static void welcome(int listener, const nghttp2_session_callbacks *callbacks, const nghttp2_option *option) {
  static const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 100000},
                                                    {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20},
                                                    {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1}};
  int one = 1, fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
  if (fd < 0) return;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  struct peer *peer = need(calloc(1, sizeof *peer));
  peer->fd = fd;
  nghttp2_session_server_new2(&peer->session, callbacks, peer, option);
  nghttp2_submit_settings(peer->session, NGHTTP2_FLAG_NONE, settings, 3);
  nghttp2_session_set_local_window_size(peer->session, NGHTTP2_FLAG_NONE, 0, 4 << 20);
  watch(peer, EPOLL_CTL_ADD, EPOLLIN);
  if (!flush(peer)) end(peer);
}

int main(int argc, char **argv) {
  if (argc < 2) return fprintf(stderr, "usage: %s PORT [PATH]\n", argv[0]), 2;
  wanted = argc > 2 ? argv[2] : NULL;
  int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(listener, (void *)&address, sizeof address) || listen(listener, 4096)) return perror("listen"), 1;

  nghttp2_session_callbacks *callbacks;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
  nghttp2_session_callbacks_set_send_data_callback(callbacks, on_send_data);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, on_field);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
  nghttp2_option *option;
  nghttp2_option_new(&option);
  nghttp2_option_set_no_closed_streams(option, 1);

  poller = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN}, events[256];
  epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    int n = epoll_wait(poller, events, 256, -1);
    for (int i = 0; i < n; i++) {
      struct peer *peer = events[i].data.ptr;
      if (!peer) welcome(listener, callbacks, option);
      else if ((events[i].events & ~(uint32_t)EPOLLOUT && !take(peer)) || !flush(peer)) end(peer);
    }
  }
}
