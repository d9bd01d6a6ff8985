#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messenger.h"

enum { CHUNK = 64 << 10 };

#define SERVICE(method) "/vencejo.chat.v1.ChatService/" method

void digest(const uint8_t *data, size_t length, uint8_t made[32]) {
  EVP_Digest(data, length, made, NULL, EVP_sha256(), NULL);
}

int messenger_upload(struct messenger *m, const uint8_t *data, size_t length, const char *id,
                     long until, char name[64]) {
  Vencejo__Chat__V1__GetAttachmentUploadRequest state =
      VENCEJO__CHAT__V1__GET_ATTACHMENT_UPLOAD_REQUEST__INIT;
  state.upload_id = (char *)id;
  Vencejo__Chat__V1__GetAttachmentUploadResponse *kept;
  int64_t offset = 0;
  int status = messenger_call(m, "GetAttachmentUpload", &state, &kept);
  if (status == GRPC_OK) {
    offset = kept->committed_bytes;
    vencejo__chat__v1__get_attachment_upload_response__free_unpacked(kept, NULL);
  } else if (strcmp(m->reason, "UPLOAD_NOT_FOUND")) {
    fail("upload: %d %s", status, m->reason);
  }
  uint8_t sum[32], *bytes = malloc(CHUNK + 64);
  digest(data, length, sum);
  Vencejo__Chat__V1__AttachmentUploadHeader header =
      VENCEJO__CHAT__V1__ATTACHMENT_UPLOAD_HEADER__INIT;
  header.upload_id = (char *)id;
  header.file_name = "numbers.bin";
  header.content_type = "application/octet-stream";
  header.size_bytes = (int64_t)length;
  header.sha256 = (ProtobufCBinaryData){sizeof sum, sum};
  header.offset = offset;
  Vencejo__Chat__V1__UploadAttachmentRequest request =
      VENCEJO__CHAT__V1__UPLOAD_ATTACHMENT_REQUEST__INIT;
  request.payload_case = VENCEJO__CHAT__V1__UPLOAD_ATTACHMENT_REQUEST__PAYLOAD_HEADER;
  request.header = &header;
  struct answer answer = {.type = &vencejo__chat__v1__upload_attachment_response__descriptor};
  struct grpc_call *call =
      grpc_start(m->connection, SERVICE("UploadAttachment"), m->access_token, on_answer, &answer);
  grpc_send(call, bytes, vencejo__chat__v1__upload_attachment_request__pack(&request, bytes));
  request.payload_case = VENCEJO__CHAT__V1__UPLOAD_ATTACHMENT_REQUEST__PAYLOAD_CHUNK;
  for (size_t at = (size_t)offset; at < length && !call->done; at += CHUNK) {
    if (until >= 0 && at >= (size_t)until) {
      grpc_free(call);
      free(bytes);
      return 0;
    }
    size_t part = length - at < CHUNK ? length - at : CHUNK;
    request.chunk = (ProtobufCBinaryData){part, (uint8_t *)data + at};
    grpc_send(call, bytes, vencejo__chat__v1__upload_attachment_request__pack(&request, bytes));
    /* No more in memory than one chunk: the server says when it takes the next. */
    while (!call->done && call->out_length > 0) messenger_run(m, 100);
  }
  grpc_send_no_more(call);
  free(bytes);
  status = messenger_finish(m, call);
  if (status || !answer.message) return 0;
  Vencejo__Chat__V1__UploadAttachmentResponse *response = (void *)answer.message;
  snprintf(name, 64, "%s", response->attachment->name);
  vencejo__chat__v1__upload_attachment_response__free_unpacked(response, NULL);
  return 1;
}

struct download {
  uint8_t *data, told[32];
  size_t length;
};

static void on_part(void *context, const uint8_t *bytes, size_t length) {
  struct download *download = context;
  Vencejo__Chat__V1__DownloadAttachmentResponse *part =
      vencejo__chat__v1__download_attachment_response__unpack(NULL, length, bytes);
  if (!part) fail("a part is no DownloadAttachmentResponse");
  if (part->payload_case == VENCEJO__CHAT__V1__DOWNLOAD_ATTACHMENT_RESPONSE__PAYLOAD_ATTACHMENT) {
    if (part->attachment->sha256.len == sizeof download->told)
      memcpy(download->told, part->attachment->sha256.data, sizeof download->told);
  } else {
    download->data = realloc(download->data, download->length + part->chunk.len);
    memcpy(download->data + download->length, part->chunk.data, part->chunk.len);
    download->length += part->chunk.len;
  }
  vencejo__chat__v1__download_attachment_response__free_unpacked(part, NULL);
}

uint8_t *messenger_download(struct messenger *m, const char *name, int64_t offset, int64_t limit,
                            size_t *length) {
  Vencejo__Chat__V1__DownloadAttachmentRequest request =
      VENCEJO__CHAT__V1__DOWNLOAD_ATTACHMENT_REQUEST__INIT;
  request.name = (char *)name;
  request.offset = offset;
  request.limit = limit;
  uint8_t bytes[256], sum[32];
  struct download download = {0};
  struct grpc_call *call =
      grpc_start(m->connection, SERVICE("DownloadAttachment"), m->access_token, on_part, &download);
  grpc_send(call, bytes, vencejo__chat__v1__download_attachment_request__pack(&request, bytes));
  grpc_send_no_more(call);
  int status = messenger_finish(m, call);
  if (status) fail("download: %d %s", status, m->reason);
  digest(download.data, download.length, sum);
  if (!offset && !limit && memcmp(sum, download.told, sizeof sum)) fail("the file came damaged");
  *length = download.length;
  return download.data;
}
