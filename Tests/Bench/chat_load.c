/* Loads a messenger for Scripts/bench/chat: many subscribers of one chat, or many senders. On one
 * thread, with what a call costs a client kept small, so that the server is what is measured.
 *
 *   chat_load subscribers PORT TOKENS CHAT COUNT CONNECTIONS MESSAGES
 *   chat_load laggards PORT TOKENS CHAT COUNT CONNECTIONS MESSAGES
 *   chat_load senders PORT TOKENS CHATS COUNT MESSAGES
 *
 * TOKENS holds an access token per line. Subscribers take COUNT of them behind the first, whose
 * owner sends. Laggards likewise, who come when all is sent, with the resume token of before it.
 * Sender n sends to line n of CHATS over a connection of its own, the next message
 * when the last is acknowledged. It prints `ready`, waits for a line on standard input, does its
 * work, prints a line of figures and waits for another line before it ends. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct call {
  uint8_t out[512];
  size_t out_length, out_sent;
  uint8_t in[8192];
  size_t in_length;
  int is_stream, is_caught_up;
  int64_t sent_at;
  int sender;
};

struct link {
  int fd;
  nghttp2_session *session;
};

static int poller, port, caught_up, delivered, acknowledged, failed;
static int64_t began;
static char **tokens, **chats;
static double *latencies;
static size_t latency_count;
static struct link *links;
static char resume[256]; /* the newest resume token */

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static void die(const char *what) {
  perror(what);
  exit(1);
}

static char **lines_of(const char *path, int count) {
  FILE *file = fopen(path, "r");
  char **lines = calloc((size_t)count, sizeof *lines), line[256];
  if (!file) die(path);
  for (int i = 0; i < count; i++) {
    if (!fgets(line, sizeof line, file)) die("too few lines");
    line[strcspn(line, "\n")] = 0;
    lines[i] = strdup(line);
  }
  fclose(file);
  return lines;
}

/* A frame of the stream, or an acknowledgement. */
static void on_message(struct call *call, const uint8_t *bytes, size_t length) {
  if (!call->is_stream) {
    if (call->sender >= 0) latencies[latency_count++] = (double)(now() - call->sent_at) / 1e6;
    acknowledged++;
    return;
  }
  /* Fields 11 (caught_up) and 20 (message_created); the others are passed over. */
  for (size_t at = 0; at < length;) {
    unsigned tag = bytes[at++];
    if (tag & 0x80) tag = (tag & 0x7f) | (unsigned)bytes[at++] << 7;
    if (tag >> 3 == 11 && !call->is_caught_up) call->is_caught_up = 1, caught_up++;
    if (tag >> 3 == 20) {
      latencies[latency_count++] = (double)(now() - began) / 1e6;
      delivered++;
    }
    size_t value = 0;
    int shift = 0;
    do value |= (size_t)(bytes[at] & 0x7f) << shift, shift += 7;
    while (bytes[at++] & 0x80);
    if (tag == (1 << 3 | 2) && value < sizeof resume && at + value <= length)
      memcpy(resume, bytes + at, value), resume[value] = 0;
    if ((tag & 7) == 2) at += value;
  }
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
                   size_t length, void *user) {
  struct call *call = nghttp2_session_get_stream_user_data(session, id);
  while (call && length) {
    size_t taken = sizeof call->in - call->in_length, at = 0;
    if (taken > length) taken = length;
    if (!taken) return NGHTTP2_ERR_CALLBACK_FAILURE;
    memcpy(call->in + call->in_length, bytes, taken);
    call->in_length += taken, bytes += taken, length -= taken;
    while (call->in_length - at >= 5) {
      size_t size = (size_t)call->in[at + 3] << 8 | call->in[at + 4];
      if (call->in_length - at - 5 < size) break;
      on_message(call, call->in + at + 5, size);
      at += 5 + size;
    }
    memmove(call->in, call->in + at, call->in_length - at);
    call->in_length -= at;
  }
  return call ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static void send_next(struct link *link, int sender);

static int on_field(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                    size_t name_length, const uint8_t *value, size_t length, uint8_t flags,
                    void *user) {
  if (name_length == 11 && !memcmp(name, "grpc-status", 11) && *value != '0') {
    fprintf(stderr, "grpc-status %.*s\n", (int)length, value);
    failed++;
  } else if (name_length == 12 && !memcmp(name, "grpc-message", 12)) {
    fprintf(stderr, "%.*s\n", (int)length, value);
  }
  return 0;
}

static int to_send; /* messages of all senders still to be begun */

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user) {
  struct call *call = nghttp2_session_get_stream_user_data(session, id);
  if (!call) return 0;
  if (code) failed++;
  int sender = call->sender;
  free(call);
  if (sender >= 0 && to_send > 0) send_next(user, sender);
  return 0;
}

static ssize_t on_read(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t room,
                       uint32_t *flags, nghttp2_data_source *source, void *user) {
  struct call *call = source->ptr;
  memcpy(buffer, call->out, call->out_length);
  *flags |= NGHTTP2_DATA_FLAG_EOF;
  return (ssize_t)call->out_length;
}

#define FIELD(name, value) \
  {(uint8_t *)(name), (uint8_t *)(value), strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE}

static struct call *start(struct link *link, const char *path, const char *token,
                          const uint8_t *bytes, size_t length) {
  struct call *call = calloc(1, sizeof *call);
  char authorization[160];
  snprintf(authorization, sizeof authorization, "Bearer %s", token);
  call->out[3] = (uint8_t)(length >> 8), call->out[4] = (uint8_t)length;
  memcpy(call->out + 5, bytes, length);
  call->out_length = 5 + length;
  call->sender = -1;
  nghttp2_nv fields[] = {FIELD(":method", "POST"), FIELD(":scheme", "http"), FIELD(":path", path),
                         FIELD(":authority", "bench"), FIELD("te", "trailers"),
                         FIELD("content-type", "application/grpc"),
                         FIELD("authorization", authorization)};
  nghttp2_data_provider body = {.source.ptr = call, .read_callback = on_read};
  if (nghttp2_submit_request(link->session, NULL, fields, 7, &body, call) < 0) die("submit");
  return call;
}

static size_t put(uint8_t *to, int field, const void *bytes, size_t length) {
  to[0] = (uint8_t)(field << 3 | 2), to[1] = (uint8_t)length;
  memcpy(to + 2, bytes, length);
  return 2 + length;
}

/* SendMessageRequest with a text of a sentence. */
static void send_message(struct link *link, const char *token, const char *chat, int sender) {
  static const char text[] = "the quick brown fox jumps over the lazy dog tonight";
  uint8_t id[16], request[256], content[128], inner[128];
  char name[40], *at = name;
  if (getrandom(id, sizeof id, 0) != sizeof id) die("getrandom");
  int64_t milliseconds = time(NULL) * 1000ll;
  for (int i = 0; i < 6; i++) id[i] = (uint8_t)(milliseconds >> (40 - 8 * i));
  id[6] = (id[6] & 15) | 0x70, id[8] = (id[8] & 63) | 0x80;
  for (int i = 0; i < 16; i++)
    at += sprintf(at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
  size_t length = put(request, 1, chat, strlen(chat));
  length += put(request + length, 2, name, 36);
  size_t inner_length = put(inner, 1, text, sizeof text - 1);
  size_t content_length = put(content, 1, inner, inner_length);
  length += put(request + length, 3, content, content_length);
  struct call *call =
      start(link, "/vencejo.chat.v1.ChatService/SendMessage", token, request, length);
  call->sent_at = now();
  call->sender = sender;
}

static void send_next(struct link *link, int sender) {
  to_send--;
  send_message(link, tokens[sender], chats[sender], sender);
}

static void flush(struct link *link) {
  const uint8_t *bytes;
  ssize_t length;
  while ((length = nghttp2_session_mem_send(link->session, &bytes)) > 0)
    while (length > 0) {
      ssize_t sent = send(link->fd, bytes, (size_t)length, MSG_NOSIGNAL);
      if (sent < 0) die("send");
      bytes += sent, length -= sent;
    }
}

static void dial(struct link *link) {
  static nghttp2_session_callbacks *callbacks;
  if (!callbacks) {
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_field);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
  }
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int one = 1;
  link->fd = socket(AF_INET, SOCK_STREAM, 0);
  if (link->fd < 0 || connect(link->fd, (void *)&address, sizeof address)) die("connect");
  setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  nghttp2_session_client_new(&link->session, callbacks, link);
  nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20}};
  nghttp2_submit_settings(link->session, NGHTTP2_FLAG_NONE, settings, 1);
  nghttp2_session_set_local_window_size(link->session, NGHTTP2_FLAG_NONE, 0, 64 << 20);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = link};
  epoll_ctl(poller, EPOLL_CTL_ADD, link->fd, &event);
  flush(link);
}

static void run_until(const int *count, int wanted, const char *what) {
  struct epoll_event events[256];
  int64_t end = now() + 120 * 1000000000ll;
  while (*count < wanted && !failed) {
    int n = epoll_wait(poller, events, 256, 1000);
    if (now() > end) break;
    for (int i = 0; i < n; i++) {
      struct link *link = events[i].data.ptr;
      static uint8_t bytes[256 << 10];
      ssize_t length = recv(link->fd, bytes, sizeof bytes, 0);
      if (length <= 0) die("recv");
      if (nghttp2_session_mem_recv(link->session, bytes, (size_t)length) < 0) die("HTTP/2");
      flush(link);
    }
  }
  if (*count >= wanted) return;
  fprintf(stderr, "%s: %d of %d\n", what, *count, wanted);
  exit(1);
}

static int rising(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static void pause_here(const char *word) {
  char line[16];
  printf("%s\n", word);
  fflush(stdout);
  if (!fgets(line, sizeof line, stdin)) exit(1);
}

static void report(double seconds, size_t count) {
  qsort(latencies, latency_count, sizeof *latencies, rising);
  printf("%zu %.6f %.3f %.3f %.3f\n", count, seconds, latencies[latency_count / 2],
         latencies[latency_count * 99 / 100], latencies[latency_count - 1]);
  fflush(stdout);
  pause_here("end");
}

static int subscribers(char **argv) {
  int count = atoi(argv[5]), connections = atoi(argv[6]), messages = atoi(argv[7]);
  tokens = lines_of(argv[3], count + 1);
  links = calloc((size_t)connections + 1, sizeof *links);
  latencies = calloc((size_t)count * (size_t)messages * 2 + 16, sizeof *latencies);
  for (int i = 0; i <= connections; i++) dial(&links[i]);
  /* heartbeat_interval of a minute: nothing else is to travel while we measure. */
  static const uint8_t request[] = {5 << 3 | 2, 2, 8, 60};
  for (int i = 0; i < count; i++) {
    struct call *call = start(&links[1 + i % connections],
                              "/vencejo.chat.v1.ChatService/Subscribe", tokens[1 + i], request,
                              sizeof request);
    call->is_stream = 1;
    if (i % 100 == 99 || i == count - 1) {
      for (int j = 1; j <= connections; j++) flush(&links[j]);
      run_until(&caught_up, i + 1, "caught up");
    }
  }
  for (int warm = 0; warm < 2; warm++) {
    send_message(&links[0], tokens[0], argv[4], -1);
    flush(&links[0]);
    run_until(&delivered, count * (warm + 1), "delivered");
    run_until(&acknowledged, warm + 1, "acknowledged");
  }
  delivered = acknowledged = 0;
  pause_here("ready");
  double *all = calloc((size_t)count * (size_t)messages + 1, sizeof *all);
  size_t kept = 0;
  int64_t start_time = now();
  for (int i = 0; i < messages; i++) {
    latency_count = 0;
    began = now();
    send_message(&links[0], tokens[0], argv[4], -1);
    flush(&links[0]);
    run_until(&delivered, count * (i + 1), "delivered");
    run_until(&acknowledged, i + 1, "acknowledged");
    memcpy(all + kept, latencies, latency_count * sizeof *all);
    kept += latency_count;
  }
  memcpy(latencies, all, kept * sizeof *all);
  latency_count = kept;
  report((double)(now() - start_time) / 1e9, (size_t)delivered);
  return 0;
}

static int laggards(char **argv) {
  int count = atoi(argv[5]), connections = atoi(argv[6]), messages = atoi(argv[7]);
  tokens = lines_of(argv[3], count + 1);
  links = calloc((size_t)connections + 1, sizeof *links);
  latencies = calloc((size_t)(count + 1) * (size_t)messages + 16, sizeof *latencies);
  for (int i = 0; i <= connections; i++) dial(&links[i]);
  uint8_t request[300] = {5 << 3 | 2, 2, 8, 60};
  start(&links[0], "/vencejo.chat.v1.ChatService/Subscribe", tokens[0], request, 4)->is_stream = 1;
  flush(&links[0]);
  run_until(&caught_up, 1, "caught up");
  size_t length = 4 + put(request + 4, 1, resume, strlen(resume));
  for (int i = 0; i < messages; i++) {
    send_message(&links[0], tokens[0], argv[4], -1);
    flush(&links[0]);
    run_until(&acknowledged, i + 1, "acknowledged");
  }
  run_until(&delivered, messages, "delivered");
  delivered = 0, latency_count = 0;
  pause_here("ready");
  int64_t start_time = began = now();
  for (int i = 0; i < count; i++)
    start(&links[1 + i % connections], "/vencejo.chat.v1.ChatService/Subscribe", tokens[1 + i],
          request, length)->is_stream = 1;
  for (int j = 1; j <= connections; j++) flush(&links[j]);
  run_until(&delivered, count * messages, "delivered");
  report((double)(now() - start_time) / 1e9, (size_t)delivered);
  return 0;
}

static int senders(char **argv) {
  int count = atoi(argv[5]), messages = atoi(argv[6]);
  tokens = lines_of(argv[3], count);
  chats = lines_of(argv[4], count);
  links = calloc((size_t)count, sizeof *links);
  latencies = calloc((size_t)messages + (size_t)count * 20, sizeof *latencies);
  for (int i = 0; i < count; i++) dial(&links[i]);
  to_send = count * 10;
  for (int i = 0; i < count; i++) send_next(&links[i], i), flush(&links[i]);
  run_until(&acknowledged, count * 10, "warm");
  acknowledged = 0, latency_count = 0;
  pause_here("ready");
  int64_t start_time = now();
  to_send = messages;
  for (int i = 0; i < count; i++) send_next(&links[i], i), flush(&links[i]);
  run_until(&acknowledged, messages, "acknowledged");
  report((double)(now() - start_time) / 1e9, (size_t)messages);
  return 0;
}

int main(int argc, char **argv) {
  poller = epoll_create1(0);
  if (argc > 2) port = atoi(argv[2]);
  if (argc == 8 && !strcmp(argv[1], "subscribers")) return subscribers(argv);
  if (argc == 8 && !strcmp(argv[1], "laggards")) return laggards(argv);
  if (argc == 7 && !strcmp(argv[1], "senders")) return senders(argv);
  return fprintf(stderr, "see the head of chat_load.c\n"), 64;
}
