/* Streaming calls against a server, with as little work of its own as nghttp2 allows.
 *
 *   load PORT PATH collect|chat CALLS CONNECTIONS STREAMS ITEMS FILE
 *
 * Each call sends ITEMS messages, FILE's bytes (gRPC's prefix included) each: `collect` at once,
 * `chat` one after each answer of as many bytes. Calls run on CONNECTIONS connections, STREAMS at a
 * time on each. Prints how many calls ended with grpc-status 0 and how many bytes of DATA came.
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

enum { BUFFER = 256 << 10 };

struct call {
  int left;        /* messages that are not sent yet */
  size_t sent;     /* bytes of the message being sent */
  size_t received; /* bytes of the answer being received */
  int waits;
};

struct link {
  int fd, running, blocked;
  nghttp2_session *session;
  uint8_t *out; /* frames on their way to the kernel */
  size_t length, offset;
};

static int chats, calls_left, items, running;
static uint8_t *message;
static size_t length;
static long succeeded, data_bytes;
static int at_a_time;

static void die(const char *what) {
  perror(what);
  exit(1);
}

static ssize_t on_read(nghttp2_session *h, int32_t id, uint8_t *buffer, size_t room, uint32_t *flags,
                       nghttp2_data_source *source, void *user) {
  struct call *call = source->ptr;
  size_t filled = 0;
  while (call->left && !call->waits && filled < room) {
    size_t n = length - call->sent;
    if (n > room - filled) n = room - filled;
    memcpy(buffer + filled, message + call->sent, n);
    filled += n;
    call->sent += n;
    if (call->sent < length) break;
    call->sent = 0;
    call->left--;
    call->waits = chats;
  }
  if (!call->left && !call->waits) *flags |= NGHTTP2_DATA_FLAG_EOF;
  if (!filled && call->waits) return NGHTTP2_ERR_DEFERRED;
  return (ssize_t)filled;
}

static const char *path, *authority = "localhost";

static void begin(struct link *link) {
#define FIELD(name, value) {(uint8_t *)name, (uint8_t *)(value), strlen(name), strlen(value), 0}
  nghttp2_nv head[] = {FIELD(":method", "POST"), FIELD(":scheme", "http"), FIELD(":path", path),
                       FIELD(":authority", authority), FIELD("te", "trailers"),
                       FIELD("content-type", "application/grpc")};
  struct call *call = calloc(1, sizeof *call);
  if (!call) die("calloc");
  call->left = items;
  nghttp2_data_provider body = {.source.ptr = call, .read_callback = on_read};
  int32_t id = nghttp2_submit_request(link->session, NULL, head, 6, &body, call);
  if (id < 0) exit(1);
  calls_left--;
  link->running++;
  running++;
}

static int on_data(nghttp2_session *h, uint8_t flags, int32_t id, const uint8_t *bytes, size_t n, void *user) {
  struct call *call = nghttp2_session_get_stream_user_data(h, id);
  data_bytes += (long)n;
  if (!call || !chats) return 0;
  call->received += n;
  if (call->received < length) return 0;
  call->received -= length;
  call->waits = 0;
  return nghttp2_session_resume_data(h, id);
}

static int on_field(nghttp2_session *h, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
                    const uint8_t *value, size_t value_length, uint8_t flags, void *user) {
  succeeded += name_length == 11 && !memcmp(name, "grpc-status", 11) && value_length == 1 && *value == '0';
  return 0;
}

static int on_close(nghttp2_session *h, int32_t id, uint32_t code, void *user) {
  struct link *link = user;
  free(nghttp2_session_get_stream_user_data(h, id));
  link->running--;
  running--;
  if (calls_left > 0) begin(link);
  return 0;
}

static int poller;

static void put(struct link *link) {
  for (;;) {
    while (link->offset == link->length || link->length < BUFFER / 2) {
      if (link->offset == link->length) link->offset = link->length = 0;
      const uint8_t *frame;
      ssize_t n = nghttp2_session_mem_send(link->session, &frame);
      if (n < 0) exit(1);
      if (!n) break;
      memcpy(link->out + link->length, frame, (size_t)n);
      link->length += (size_t)n;
    }
    if (link->offset == link->length) break;
    ssize_t n = send(link->fd, link->out + link->offset, link->length - link->offset, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN) die("send");
    if (n < 0) break;
    link->offset += (size_t)n;
  }
  int blocked = link->offset < link->length;
  if (blocked == link->blocked) return;
  link->blocked = blocked;
  struct epoll_event event = {.events = blocked ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = link};
  epoll_ctl(poller, EPOLL_CTL_MOD, link->fd, &event);
}

int main(int argc, char **argv) {
  if (argc != 9) return fprintf(stderr, "usage: see the top of load.c\n"), 2;
  path = argv[2];
  chats = !strcmp(argv[3], "chat");
  calls_left = atoi(argv[4]);
  int links = atoi(argv[5]), wanted = calls_left;
  at_a_time = atoi(argv[6]);
  items = atoi(argv[7]);
  FILE *file = fopen(argv[8], "rb");
  message = malloc(BUFFER);
  if (!file || !message) die(argv[8]);
  length = fread(message, 1, BUFFER, file);

  nghttp2_session_callbacks *callbacks;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, on_field);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
  static const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                                    {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20}};
  poller = epoll_create1(0);
  struct link *all = calloc((size_t)links, sizeof *all);
  for (int i = 0; i < links; i++) {
    struct link *link = &all[i];
    int one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    link->fd = socket(AF_INET, SOCK_STREAM, 0);
    link->out = malloc(BUFFER);
    if (!link->out) die("malloc");
    if (connect(link->fd, (void *)&address, sizeof address)) die("connect");
    setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    nghttp2_session_client_new(&link->session, callbacks, link);
    nghttp2_submit_settings(link->session, NGHTTP2_FLAG_NONE, settings, 2);
    nghttp2_session_set_local_window_size(link->session, NGHTTP2_FLAG_NONE, 0, 4 << 20);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = link};
    epoll_ctl(poller, EPOLL_CTL_ADD, link->fd, &event);
    for (int n = 0; n < at_a_time && calls_left > 0; n++) begin(link);
    put(link);
  }
  static uint8_t in[BUFFER];
  while (running) {
    struct epoll_event events[64];
    int n = epoll_wait(poller, events, 64, 60000);
    if (n <= 0) return fprintf(stderr, "nothing came for a minute\n"), 1;
    for (int i = 0; i < n; i++) {
      struct link *link = events[i].data.ptr;
      if (events[i].events & EPOLLIN) {
        ssize_t got = recv(link->fd, in, sizeof in, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN)) die("recv");
        if (got > 0 && nghttp2_session_mem_recv(link->session, in, (size_t)got) != got) exit(1);
      }
      put(link);
    }
  }
  printf("%ld %ld\n", succeeded, data_bytes);
  return succeeded == wanted ? 0 : 1;
}
