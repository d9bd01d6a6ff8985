#include <openssl/evp.h>

#include "messenger.h"

namespace {

constexpr size_t chunk_size = 64 << 10;

}  // namespace

std::string digest(const std::string& data) {
  std::string made(32, '\0');
  EVP_Digest(data.data(), data.size(), reinterpret_cast<unsigned char*>(&made[0]), nullptr,
             EVP_sha256(), nullptr);
  return made;
}

std::string Messenger::upload(const std::string& data, const std::string& name,
                              const std::string& id, long until) {
  long offset = 0;
  try {
    chat::GetAttachmentUploadRequest request;
    request.set_upload_id(id);
    offset = call(&chat::ChatService::Stub::GetAttachmentUpload, request).committed_bytes();
  } catch (const CallFailed& failed) {
    if (failed.reason != "UPLOAD_NOT_FOUND") throw;
  }
  chat::UploadAttachmentResponse response;
  authorized([&](grpc::ClientContext& context) {
    const auto stream = chats->UploadAttachment(&context, &response);
    chat::UploadAttachmentRequest request;
    auto* header = request.mutable_header();
    header->set_upload_id(id);
    header->set_file_name(name);
    header->set_content_type("application/octet-stream");
    header->set_size_bytes(static_cast<long>(data.size()));
    header->set_sha256(digest(data));
    header->set_offset(offset);
    bool goes_on = stream->Write(request);
    for (size_t at = offset; goes_on && at < data.size(); at += chunk_size) {
      if (until >= 0 && at >= static_cast<size_t>(until)) {
        context.TryCancel();
        break;
      }
      request.set_chunk(data.substr(at, chunk_size));
      goes_on = stream->Write(request);
    }
    stream->WritesDone();
    return stream->Finish();
  });
  return response.attachment().name();
}

std::string Messenger::download(const std::string& name, long offset, long limit) {
  std::string data, told;
  authorized([&](grpc::ClientContext& context) {
    chat::DownloadAttachmentRequest request;
    request.set_name(name);
    request.set_offset(offset);
    request.set_limit(limit);
    const auto stream = chats->DownloadAttachment(&context, request);
    chat::DownloadAttachmentResponse part;
    data.clear();
    while (stream->Read(&part)) {
      if (part.has_attachment()) told = part.attachment().sha256();
      data += part.chunk();
    }
    return stream->Finish();
  });
  if (offset == 0 && limit == 0 && digest(data) != told)
    throw std::runtime_error("the file came damaged");
  return data;
}
