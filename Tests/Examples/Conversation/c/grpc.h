/* gRPC over HTTP/2 without TLS, for one thread: what a client needs and no more.
 *
 * A call is an HTTP/2 stream. Messages travel in its data, each behind five bytes: 0 (not
 * compressed) and the length, big-endian. The trailers tell how it ended: grpc-status (0 is
 * well), grpc-message (percent-encoded) and grpc-status-details-bin (base64 of a
 * google.rpc.Status). */
#ifndef GRPC_H
#define GRPC_H

#include <stddef.h>
#include <stdint.h>

enum { GRPC_OK = 0, GRPC_CANCELLED = 1, GRPC_UNKNOWN = 2, GRPC_DEADLINE_EXCEEDED = 4,
       GRPC_RESOURCE_EXHAUSTED = 8, GRPC_UNAVAILABLE = 14, GRPC_UNAUTHENTICATED = 16 };

struct grpc_connection;

struct grpc_call {
  struct grpc_call *next;
  struct grpc_connection *connection;
  int32_t stream;
  /* Each message, as it comes. */
  void (*on_message)(void *context, const uint8_t *bytes, size_t length);
  void *context;
  /* How it ended, once `done`. */
  int done, status;
  uint8_t *details;
  size_t details_length;
  /* What is on its way. */
  uint8_t *in, *out;
  size_t in_length, out_length, out_sent;
  int sends_no_more;
};

/* NULL when nobody listens there. */
struct grpc_connection *grpc_connect(const char *host, const char *port);
/* Ends its calls, as UNAVAILABLE. */
void grpc_disconnect(struct grpc_connection *connection);
/* Waits up to so many milliseconds for the network and does what is to be done; false when the
 * connection is over. */
int grpc_run(struct grpc_connection *connection, int milliseconds);

/* Begins a call; `bearer` may be NULL. It is the caller's to free. */
struct grpc_call *grpc_start(struct grpc_connection *connection, const char *path,
                             const char *bearer,
                             void (*on_message)(void *, const uint8_t *, size_t), void *context);
/* Puts a message on its way. `out_length - out_sent` tells how much still waits. */
void grpc_send(struct grpc_call *call, const uint8_t *bytes, size_t length);
void grpc_send_no_more(struct grpc_call *call);
/* Frees a call; one that goes on is cancelled. */
void grpc_free(struct grpc_call *call);

#endif
