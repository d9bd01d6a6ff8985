/* Decoding and encoding again (oracle.py's "P") by protobuf-c, for the messages it was generated
 * with. It teaches itself no files: "F" is answered with success. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "types.h" /* made by the makefile: `types`, ended by NULL */

static const ProtobufCMessageDescriptor *find(const char *name, size_t size) {
  for (const ProtobufCMessageDescriptor *const *type = types; *type; type++)
    if (strlen((*type)->name) == size && !memcmp((*type)->name, name, size)) return *type;
  return NULL;
}

static uint32_t length(const uint8_t *bytes) {
  uint32_t value;
  memcpy(&value, bytes, 4);
  return value;
}

int main(void) {
  uint8_t head[4];
  while (fread(head, 1, 4, stdin) == 4) {
    const size_t size = length(head);
    uint8_t *frame = malloc(size + 1);
    if (!frame || fread(frame, 1, size, stdin) != size) return 1;
    size_t position = 1;
    const ProtobufCMessageDescriptor *type = NULL;
    uint8_t *body = NULL;
    size_t filled = 0;
    for (int part = 0; position < size; part++) {
      const uint32_t count = length(frame + position);
      const uint8_t *bytes = frame + position + 4;
      position += 4 + count;
      if (part == 0) {
        type = find((const char *)bytes, count);
        continue;
      }
      ProtobufCMessage *message =
          frame[0] == 'P' && type ? protobuf_c_message_unpack(type, NULL, count, bytes) : NULL;
      const uint32_t packed = message ? protobuf_c_message_get_packed_size(message) : 0;
      body = realloc(body, filled + 5 + packed);
      body[filled] = message != NULL || frame[0] == 'F';
      memcpy(body + filled + 1, &packed, 4);
      if (message) {
        protobuf_c_message_pack(message, body + filled + 5);
        protobuf_c_message_free_unpacked(message, NULL);
      }
      filled += 5 + packed;
    }
    const uint32_t total = filled;
    fwrite(&total, 1, 4, stdout);
    fwrite(body, 1, filled, stdout);
    fflush(stdout);
    free(body);
    free(frame);
  }
  return 0;
}
